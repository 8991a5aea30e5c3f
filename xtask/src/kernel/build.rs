//! Builds a patched kernel once per content. Owns the key (package, patch, configuration, compiler, this very recipe) and the
//! files `target/kernel/vmlinux-KEY`; a tree that was built in is removed, but for the one that mutants are built in.

use super::source::{self, Source, output, run};
use super::{Config, Debian};
use anyhow::{Context as _, bail};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
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

/// An unpacked, patched and configured tree.
pub struct Tree {
    /// The sources.
    pub source: PathBuf,
    /// Where make builds.
    pub objects: PathBuf,
}

/// The files that the patch adds, below `sigblock/linux/files`, in the order of the patch.
const NEW_FILES: &[&str] = &[
    "Documentation/userspace-api/sigfastblock.rst",
    "include/linux/sigfastblock.h",
    "include/uapi/linux/sigfastblock.h",
    "kernel/sigfastblock.c",
];

/// The kernel for that source and configuration, built unless it is there.
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
    let result = unpack(source, config, &place).and_then(|tree| {
        check_style(source.debian, &tree)?;
        compile(&tree)?;
        let fresh = place.join("vmlinux.stripped");
        strip(&tree, &fresh)?;
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
    for fragment in config.fragments() {
        content.push_str(&super::read(&super::sources().join("config").join(fragment))?);
    }
    content.push_str(&output(Command::new("gcc").arg("-dumpfullversion"))?);
    content.push_str(include_str!("build.rs"));
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

/// Unpacks, patches and configures below `place`, which is made.
pub fn unpack(source: &Source, config: Config, place: &Path) -> anyhow::Result<Tree> {
    fs::create_dir_all(place).with_context(|| place.display().to_string())?;
    run(Command::new("tar").arg("xf").arg(&source.archive).arg("-C").arg(place), "tar: the kernel's source")?;
    let tree =
        Tree { source: place.join(format!("linux-source-{}", source.debian.linux())), objects: place.join("objects") };
    let file = place.join("whole.patch");
    fs::write(&file, whole_patch(source.debian)?)?;
    // No fuzz: with one line of context a hook in the wrong place must be an error.
    let mut patch = Command::new("patch");
    patch.args(["--strip=1", "--fuzz=0", "--batch", "--directory"]).arg(&tree.source).arg("--input").arg(&file);
    source::run(&mut patch, "patch: the kernel's source has changed")?;
    configure(&tree, config)?;
    Ok(tree)
}

/// The smallest configuration and our fragments on it; every option of them must have been taken.
fn configure(tree: &Tree, config: Config) -> anyhow::Result<()> {
    run(make(tree).arg("tinyconfig"), "make tinyconfig")?;
    let mut wanted: Vec<(String, String)> = Vec::new();
    let file = tree.objects.join(".config");
    let mut text = super::read(&file)?;
    for fragment in config.fragments() {
        let path = super::sources().join("config").join(fragment);
        for line in super::read(&path)?.lines().filter(|line| line.starts_with("CONFIG_")) {
            let (name, value) = line.split_once('=').with_context(|| format!("{fragment}: {line}"))?;
            wanted.retain(|(other, _)| other != name);
            wanted.push((name.to_owned(), value.to_owned()));
        }
    }
    // Of two settings of an option the last counts.
    for (name, value) in &wanted {
        match value.as_str() {
            "n" => text.push_str(&format!("# {name} is not set\n")),
            value => text.push_str(&format!("{name}={value}\n")),
        }
    }
    fs::write(&file, text).with_context(|| file.display().to_string())?;
    run(make(tree).arg("olddefconfig"), "make olddefconfig")?;
    let taken = super::read(&file)?;
    for (name, value) in &wanted {
        let set = taken.lines().any(|line| line == format!("{name}={value}"));
        let unset = !taken.lines().any(|line| line.starts_with(&format!("{name}=")));
        if !(set || value == "n" && unset) {
            bail!("this kernel's configuration does not take {name}={value}");
        }
    }
    Ok(())
}

/// The kernel's own style checker: no error, no warning. The patch adds files and is no mail: those two complaints are meant
/// for submissions.
fn check_style(debian: Debian, tree: &Tree) -> anyhow::Result<()> {
    let file = tree.objects.join("whole.patch");
    fs::write(&file, whole_patch(debian)?)?;
    let mut checker = Command::new("perl");
    checker.arg(tree.source.join("scripts/checkpatch.pl")).args([
        "--no-signoff",
        "--ignore",
        "COMMIT_MESSAGE,FILE_PATH_CHANGES",
    ]);
    run(checker.arg("--root").arg(&tree.source).arg(&file), "checkpatch")
}

/// Builds vmlinux.
pub fn compile(tree: &Tree) -> anyhow::Result<()> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    run(make(tree).arg(format!("-j{jobs}")).arg("vmlinux"), "make vmlinux")
}

/// Copies vmlinux without its symbols.
pub fn strip(tree: &Tree, to: &Path) -> anyhow::Result<()> {
    run(Command::new("strip").arg("-o").arg(to).arg(tree.objects.join("vmlinux")), "strip")
}

/// A make that is the last to get a processor: whole kernels are built beside other work.
fn make(tree: &Tree) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "19", "make", "--silent", "-C"]).arg(&tree.source).arg(format!("O={}", tree.objects.display()));
    command
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .env("KBUILD_BUILD_USER", "lab")
        .env("KBUILD_BUILD_HOST", "lab");
    command
}
