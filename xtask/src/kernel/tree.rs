//! A kernel's tree: unpacked, patched, configured, compiled. Owns the recipe, whose text is part of a kernel's key; knows
//! neither the key nor where results are kept.

use super::source::{Source, run};
use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources and the place where make builds from them.
pub struct Tree {
    /// The sources.
    pub source: PathBuf,
    /// Where make builds.
    pub objects: PathBuf,
}

impl Tree {
    /// The tree of that source below `place`, whether it is there or not.
    pub fn at(source: &Source, place: &Path) -> Self {
        Self { source: place.join(format!("linux-source-{}", source.debian.linux())), objects: place.join("objects") }
    }

    /// Unpacks below `place`, which is made.
    pub fn unpack(source: &Source, place: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(place).with_context(|| place.display().to_string())?;
        run(Command::new("tar").arg("xf").arg(&source.archive).arg("-C").arg(place), "tar: the kernel's source")?;
        let tree = Self::at(source, place);
        fs::create_dir_all(&tree.objects).with_context(|| tree.objects.display().to_string())?;
        Ok(tree)
    }

    /// Applies a patch.
    pub fn apply(&self, patch: &str) -> anyhow::Result<()> {
        let file = self.patch_file(patch)?;
        // No fuzz: with one line of context a hook in the wrong place must be an error.
        let mut command = Command::new("patch");
        command.args(["--strip=1", "--fuzz=0", "--batch", "--directory"]).arg(&self.source).arg("--input").arg(&file);
        run(&mut command, "patch: the kernel's source has changed")
    }

    /// The smallest configuration and on it the lines of fragments; each must be taken. Of two for an option the last counts.
    pub fn configure(&self, fragments: &str) -> anyhow::Result<()> {
        run(self.make().arg("tinyconfig"), "make tinyconfig")?;
        let mut wanted: Vec<(&str, &str)> = Vec::new();
        for line in fragments.lines().filter(|line| line.starts_with("CONFIG_")) {
            let (name, value) = line.split_once('=').with_context(|| format!("configuration: {line}"))?;
            wanted.retain(|(other, _)| *other != name);
            wanted.push((name, value));
        }
        let file = self.objects.join(".config");
        let mut text = super::read(&file)?;
        for (name, value) in &wanted {
            match *value {
                "n" => text.push_str(&format!("# {name} is not set\n")),
                value => text.push_str(&format!("{name}={value}\n")),
            }
        }
        fs::write(&file, text).with_context(|| file.display().to_string())?;
        run(self.make().arg("olddefconfig"), "make olddefconfig")?;
        let taken = super::read(&file)?;
        for (name, value) in &wanted {
            let set = taken.lines().any(|line| line == format!("{name}={value}"));
            let unset = !taken.lines().any(|line| line.starts_with(&format!("{name}=")));
            if !(set || *value == "n" && unset) {
                bail!("this kernel's configuration does not take {name}={value}");
            }
        }
        Ok(())
    }

    /// The kernel's own style checker: no error, no warning. The patch adds files and is no mail: those two complaints are
    /// meant for submissions.
    pub fn check_style(&self, patch: &str) -> anyhow::Result<()> {
        let file = self.patch_file(patch)?;
        let mut checker = Command::new("perl");
        checker.arg(self.source.join("scripts/checkpatch.pl")).args([
            "--no-signoff",
            "--ignore",
            "COMMIT_MESSAGE,FILE_PATH_CHANGES",
        ]);
        run(checker.arg("--root").arg(&self.source).arg(&file), "checkpatch")
    }

    /// Builds what is named: `vmlinux`, or object files.
    pub fn compile(&self, targets: &[&str]) -> anyhow::Result<()> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        run(self.make().arg(format!("-j{jobs}")).args(targets), &format!("make {}", targets.join(" ")))
    }

    /// Copies vmlinux without its symbols.
    pub fn strip(&self, to: &Path) -> anyhow::Result<()> {
        run(Command::new("strip").arg("-o").arg(to).arg(self.objects.join("vmlinux")), "strip")
    }

    fn make(&self) -> Command {
        let mut command = Command::new("make");
        command.args(["--silent", "-C"]).arg(&self.source).arg(format!("O={}", self.objects.display()));
        command
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL")
            .env("KBUILD_BUILD_USER", "lab")
            .env("KBUILD_BUILD_HOST", "lab");
        command
    }

    fn patch_file(&self, patch: &str) -> anyhow::Result<PathBuf> {
        let file = self.objects.join("whole.patch");
        fs::write(&file, patch).with_context(|| file.display().to_string())?;
        Ok(file)
    }
}
