//! The image that a kernel is booted with: compiles the lab's programs and packs a file system in memory (cpio, "newc" format,
//! as Documentation/driver-api/early-userspace/buffer-format.rst describes it).

use super::source::run;
use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const REGULAR: u32 = 0o100_000;
pub(super) const DIRECTORY: u32 = 0o040_000;
pub(super) const SYMBOLIC_LINK: u32 = 0o120_000;
const SET_USER_ID: u32 = 0o4000;

/// The image of suite kernel.
pub fn kernel_tests() -> anyhow::Result<PathBuf> {
    let directory = super::directory()?;
    let lab = super::sources().join("lab");
    let mut tests = Vec::new();
    for entry in fs::read_dir(&lab).with_context(|| lab.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") && !path.ends_with("init.c") {
            tests.push(path);
        }
    }
    tests.sort();
    let unique = std::process::id();
    let ktest = compile(&tests, &directory.join(format!("ktest-{unique}")))?;
    let mut archive = Archive::with_init()?;
    archive.add("bin", DIRECTORY | 0o755, &[])?;
    archive.add("bin/ktest", REGULAR | 0o755, &ktest)?;
    archive.add("bin/set-id", REGULAR | SET_USER_ID | 0o755, &ktest)?;
    archive.store("kernel")
}

/// The static program made from those files.
fn compile(sources: &[PathBuf], to: &Path) -> anyhow::Result<Vec<u8>> {
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-s", "-o"]).arg(to).args(sources);
    run(&mut gcc, "gcc: the lab's programs")?;
    let program = fs::read(to).with_context(|| to.display().to_string())?;
    fs::remove_file(to)?;
    Ok(program)
}

/// An archive under construction.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// An archive with process 1 and the places where it mounts what every image needs.
    pub(super) fn with_init() -> anyhow::Result<Self> {
        let init = super::directory()?.join(format!("init-{}", std::process::id()));
        let init = compile(&[super::sources().join("lab/init.c")], &init)?;
        let mut archive = Self::default();
        for name in ["dev", "proc", "sys", "tmp"] {
            archive.add(name, DIRECTORY | 0o755, &[])?;
        }
        archive.add("init", REGULAR | 0o755, &init)?;
        Ok(archive)
    }

    /// Ends the archive and writes it to a file of this process.
    pub(super) fn store(self, name: &str) -> anyhow::Result<PathBuf> {
        let path = super::directory()?.join(format!("{name}-{}.cpio", std::process::id()));
        fs::write(&path, self.end()?).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Adds an entry, owned by root. The content of a symbolic link is where it leads to.
    pub(super) fn add(&mut self, name: &str, mode: u32, content: &[u8]) -> anyhow::Result<()> {
        let size = u32::try_from(content.len()).with_context(|| format!("{name} is too large"))?;
        let name_size = u32::try_from(name.len() + 1)?;
        if name.starts_with('/') {
            bail!("{name}: names in an archive are relative");
        }
        self.entries += 1;
        // inode, mode, owner, group, links, time, size, device of the file (2), device it is (2), length of the name, checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
        Ok(())
    }

    fn end(mut self) -> anyhow::Result<Vec<u8>> {
        self.add("TRAILER!!!", 0, &[])?;
        Ok(self.bytes)
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::Stdio;

    #[test]
    fn cpio_reads_what_was_packed() {
        let mut archive = Archive::default();
        archive.add("d", DIRECTORY | 0o755, &[]).unwrap();
        archive.add("d/x", REGULAR | SET_USER_ID | 0o755, b"12345").unwrap();
        assert!(archive.add("/x", REGULAR, b"").is_err());
        let bytes = archive.end().unwrap();
        let mut cpio = Command::new("cpio")
            .args(["--extract", "--to-stdout", "--quiet", "d/x"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        cpio.stdin.take().unwrap().write_all(&bytes).unwrap();
        assert_eq!(cpio.wait_with_output().unwrap().stdout, b"12345");
    }
}
