//! Builds a patched kernel once per content. Owns the key (package, patch, configuration, compiler, recipe), the assembly of
//! the patch, and the files `target/kernel/vmlinux-KEY`; a tree that was built in is removed.

use super::source::{Source, output};
use super::tree::Tree;
use super::{Config, Debian};
use anyhow::{Context as _, bail};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A kernel that can be booted.
pub struct Kernel {
    /// What it was made from, 16 hexadecimal digits.
    pub key: String,
    /// The ELF file, without symbols.
    pub vmlinux: PathBuf,
    /// Whether it was there already.
    pub cached: bool,
}

/// The files that the patch adds, below `sigblock/linux/files`, in the order of the patch.
const NEW_FILES: &[&str] = &[
    "Documentation/userspace-api/sigfastblock.rst",
    "include/linux/sigfastblock.h",
    "include/uapi/linux/sigfastblock.h",
    "kernel/sigfastblock.c",
];

/// The kernel for that source and configuration, built unless it is there. It is there only if checkpatch found the patch
/// clean.
pub fn kernel(source: &Source, config: Config) -> anyhow::Result<Kernel> {
    let key = key(source, config)?;
    let directory = super::directory()?;
    let vmlinux = directory.join(format!("vmlinux-{key}"));
    if vmlinux.exists() {
        return Ok(Kernel { key, vmlinux, cached: true });
    }
    eprintln!(
        "kernel: building Linux {} ({}), some minutes; kept in {}",
        source.debian.linux(),
        source.version,
        vmlinux.display()
    );
    let place = directory.join(format!("build-{key}-{}", std::process::id()));
    let result = Tree::unpack(source, &place).and_then(|tree| {
        let patch = whole_patch(source.debian)?;
        tree.apply(&patch)?;
        tree.check_style(&patch)?;
        tree.configure(&fragments(config)?)?;
        tree.compile(&["vmlinux"])?;
        let fresh = place.join("vmlinux.stripped");
        tree.strip(&fresh)?;
        fs::rename(&fresh, &vmlinux).with_context(|| vmlinux.display().to_string())
    });
    fs::remove_dir_all(&place).with_context(|| place.display().to_string())?;
    result?;
    Ok(Kernel { key, vmlinux, cached: false })
}

/// A hash over all that the kernel is made from.
pub fn key(source: &Source, config: Config) -> anyhow::Result<String> {
    let mut content = format!("{}\n{}\n", source.debian.linux(), source.version);
    content.push_str(&whole_patch(source.debian)?);
    content.push_str(&fragments(config)?);
    content.push_str(&output(Command::new("gcc").arg("-dumpfullversion"))?);
    content.push_str(include_str!("tree.rs"));
    let mut child =
        Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("sha256sum")?;
    child.stdin.take().context("sha256sum: no pipe")?.write_all(content.as_bytes())?;
    let printed = child.wait_with_output()?;
    if !printed.status.success() {
        bail!("sha256sum: {}", printed.status);
    }
    let digits = String::from_utf8(printed.stdout)?;
    Ok(digits.get(..16).context("sha256sum: short")?.to_owned())
}

/// The patch for one kernel: the hooks, then the new files.
pub fn whole_patch(debian: Debian) -> anyhow::Result<String> {
    let mut patch = super::read(&super::sources().join(format!("hooks-{}.patch", debian.linux())))?;
    for name in NEW_FILES {
        let text = super::read(&super::sources().join("files").join(name))?;
        patch.push_str(&format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{} @@\n", text.lines().count()));
        for line in text.lines() {
            patch.push_str(&format!("+{line}\n"));
        }
    }
    Ok(patch)
}

/// The lines of a configuration's fragments, one after the other.
pub fn fragments(config: Config) -> anyhow::Result<String> {
    let read = |name: &&str| super::read(&super::sources().join("config").join(name));
    config.fragments().iter().map(read).collect()
}
