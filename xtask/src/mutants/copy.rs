//! The copy of the workspace that mutants are put into, kept from one run to the next so that little is built again. Owns
//! `target/mutants` and makes the copy equal to the workspace; changes nothing outside it.

use crate::artifact;
use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What of the workspace's top directory is not copied: what is built, and what only the history needs.
const LEFT: [&str; 2] = ["target", ".git"];

/// A copy and the place where it is built.
pub struct Copy {
    /// The copied workspace.
    pub tree: PathBuf,
    /// Its build directory.
    pub target: PathBuf,
}

impl Copy {
    /// Makes the copy, or makes the one that is there equal to the workspace again. A file that is equal is not written, so that
    /// cargo takes it for unchanged.
    pub fn make() -> Result<Self> {
        let place = artifact::target_directory().join("mutants");
        fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
        let place = place.canonicalize()?;
        let copy = Self { tree: place.join("tree"), target: place.join("target") };
        let here = files(&crate::root())?;
        if copy.tree.exists() {
            for gone in files(&copy.tree)?.difference(&here) {
                fs::remove_file(copy.tree.join(gone))?;
            }
        }
        for file in &here {
            copy.restore(file)?;
        }
        Ok(copy)
    }

    /// Makes one file equal to the workspace's.
    fn restore(&self, file: &Path) -> Result<()> {
        let (from, to) = (crate::root().join(file), self.tree.join(file));
        let bytes = fs::read(&from).with_context(|| from.display().to_string())?;
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        if let Some(directory) = to.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&to, bytes).with_context(|| to.display().to_string())
    }
}

/// Every file below `root`, relative to it.
fn files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut left = vec![PathBuf::new()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(root.join(&directory)).with_context(|| directory.display().to_string())? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            let kind = entry.file_type()?;
            if LEFT.iter().any(|name| path == Path::new(name)) {
                continue;
            } else if kind.is_dir() {
                left.push(path);
            } else if kind.is_file() {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_copied_and_results_are_not() {
        let found = files(&crate::root()).unwrap();
        assert!(found.contains(Path::new("Cargo.lock")));
        assert!(found.contains(Path::new("sigblock/src/lib.rs")));
        assert!(!found.iter().any(|path| path.starts_with("target") || path.starts_with(".git")));
    }
}
