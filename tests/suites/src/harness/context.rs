//! Where things lie during a run: the loader under test (a private copy), ld-linux, the fixtures, and a fresh directory for
//! each suite. Owns these directories and removes them; decides what may be tested (never ld-linux itself).

use anyhow::{Context as _, bail};
use nix::unistd::mkdtemp;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The path that Linux x86-64 programs name as their interpreter (psABI, "Program Interpreter").
const REFERENCE: &str = "/lib64/ld-linux-x86-64.so.2";

/// Where the suites run, which decides what can be had there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A machine with compilers and a kernel without the patch.
    Machine,
    /// A guest of the kernel lab: the patched kernel, fixtures that were compiled before it started, and an emulated processor
    /// that is some hundred times slower.
    Guest,
}

impl Place {
    /// The back ends in which sections are looked at.
    pub fn back_ends(self) -> &'static [&'static str] {
        match self {
            Self::Machine => &["user", "sigprocmask"],
            Self::Guest => &["kernel"],
        }
    }

    /// What the loader chooses by itself.
    pub fn auto(self) -> &'static str {
        match self {
            Self::Machine => "user",
            Self::Guest => "kernel",
        }
    }

    /// How often a limit that guards against hanging is needed.
    pub fn patience(self) -> u32 {
        match self {
            Self::Machine => 1,
            Self::Guest => 10,
        }
    }
}

/// The places one suite works with.
#[derive(Debug, Clone)]
pub struct Context {
    /// Where it runs.
    pub place: Place,
    /// The loader under test: a copy whose path is short enough for the PT_INTERP string of an existing program.
    pub loader: PathBuf,
    /// ld-linux, canonical path.
    pub reference: PathBuf,
    /// A fresh directory of this suite, world-readable.
    pub work: PathBuf,
    /// `tests/programs`, the fixtures.
    pub programs: PathBuf,
    /// `tests/programs/cases`.
    pub cases: PathBuf,
    /// The workspace.
    pub root: PathBuf,
    /// The artifact that was copied to `loader`.
    pub artifact: PathBuf,
    /// How long a soak lasts, if that was asked for.
    pub seconds: Option<u64>,
}

/// A run that asks for a back end must get it: what the loader chose, as it says itself.
fn has_backend(loader: &Path) -> anyhow::Result<()> {
    let Some(wanted) = super::backend() else { return Ok(()) };
    let output = Command::new(loader).arg("--list-diagnostics").env_clear().envs(super::always()).output()?;
    let line = format!("sigblock.backend=\"{wanted}\"");
    if !String::from_utf8_lossy(&output.stdout).lines().any(|known| known == line) {
        bail!("the loader does not have the back end {wanted}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// A run that asks for a way of looking names up must get it: what the loader did, as it says itself.
fn has_lookup(loader: &Path) -> anyhow::Result<()> {
    let Some(wanted) = super::lookup() else { return Ok(()) };
    let mut command = Command::new(loader);
    let output = command.arg("/bin/true").env_clear().envs(super::always()).env("LD_DEBUG", "statistics").output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !said.contains(&format!("/bin/true: lookup: mode={wanted} ")) {
        bail!("the loader does not look names up by {wanted}: {}", said.trim());
    }
    Ok(())
}

/// A run's private directory `/tmp/rtld.XXXXXX`, removed on drop unless `RTLD_KEEP=1`.
#[derive(Debug)]
pub struct Workshop {
    place: Place,
    directory: PathBuf,
    artifact: PathBuf,
    seconds: Option<u64>,
    keep: bool,
}

impl Workshop {
    /// Makes the directory and copies the loader to `ld` in it. Fails if the loader is ld-linux: nothing would be shown.
    pub fn open(artifact: &Path) -> anyhow::Result<Self> {
        let artifact = artifact.canonicalize().with_context(|| format!("no loader at {}", artifact.display()))?;
        let reference = reference()?;
        let bytes = fs::read(&artifact)?;
        if bytes == fs::read(&reference)?
            || shared_object_name(&bytes).is_some_and(|name| name.starts_with(b"ld-linux"))
        {
            bail!("{} is glibc's own loader: nothing would be shown", artifact.display());
        }
        let directory = mkdtemp("/tmp/rtld.XXXXXX").context("mkdtemp /tmp/rtld.XXXXXX")?;
        // Suites run some programs as an unprivileged user.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
        let keep = std::env::var_os("RTLD_KEEP").is_some_and(|value| value == "1");
        let workshop = Self { place: Place::Machine, directory, artifact, seconds: None, keep };
        fs::copy(&workshop.artifact, workshop.loader())?;
        fs::set_permissions(workshop.loader(), fs::Permissions::from_mode(0o755))?;
        has_backend(&workshop.loader())?;
        has_lookup(&workshop.loader())?;
        Ok(workshop)
    }

    /// In a guest: the directory that a workshop was opened in before, with the loader and the fixtures in it.
    pub fn resume(directory: &Path) -> anyhow::Result<Self> {
        let workshop = Self {
            place: Place::Guest,
            directory: directory.to_owned(),
            artifact: directory.join("ld"),
            seconds: None,
            keep: true,
        };
        has_backend(&workshop.loader())?;
        Ok(workshop)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Sets how long a soak lasts.
    pub fn lasting(mut self, seconds: Option<u64>) -> Self {
        self.seconds = seconds;
        self
    }

    /// The private copy of the loader.
    pub fn loader(&self) -> PathBuf {
        self.directory.join("ld")
    }

    /// The context of the suite called `name`, with a fresh work directory; in a guest the one that was prepared.
    pub fn context(&self, name: &str) -> anyhow::Result<Context> {
        let work = self.directory.join(name);
        if self.place == Place::Machine {
            if work.exists() {
                fs::remove_dir_all(&work)?;
            }
            fs::create_dir(&work)?;
            fs::set_permissions(&work, fs::Permissions::from_mode(0o755))?;
        }
        // A guest has no sources; its fixtures are ready.
        let root = match self.place {
            Place::Machine => Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?,
            Place::Guest => self.directory.clone(),
        };
        let programs = root.join("tests/programs");
        Ok(Context {
            place: self.place,
            loader: self.loader(),
            reference: reference()?,
            work,
            cases: programs.join("cases"),
            programs,
            root,
            artifact: self.artifact.clone(),
            seconds: self.seconds,
        })
    }

    /// Removes the work directory of a finished suite.
    pub fn close(&self, context: &Context) -> anyhow::Result<()> {
        if !self.keep {
            fs::remove_dir_all(&context.work)?;
        }
        Ok(())
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        if self.place == Place::Guest {
            return;
        }
        if self.keep {
            eprintln!("kept: {}", self.directory.display());
        } else if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("cannot remove {}: {error}", self.directory.display());
        }
    }
}

/// ld-linux's file.
fn reference() -> anyhow::Result<PathBuf> {
    Path::new(REFERENCE).canonicalize().with_context(|| format!("no {REFERENCE} (Debian package libc6)"))
}

/// DT_SONAME of an ELF file.
fn shared_object_name(bytes: &[u8]) -> Option<Vec<u8>> {
    use object::elf::{DT_SONAME, FileHeader64};
    use object::read::elf::{Dyn as _, ElfFile64};
    let file: ElfFile64<'_, object::Endianness> = ElfFile64::parse(bytes).ok()?;
    let _: &FileHeader64<object::Endianness> = file.elf_header();
    let endian = file.endian();
    let (entries, strings) = file.elf_section_table().dynamic(endian, bytes).ok()??;
    let strings = file.elf_section_table().strings(endian, bytes, strings).ok()?;
    let entry = entries.iter().find(|entry| entry.tag32(endian) == Some(DT_SONAME))?;
    entry.string(endian, strings).ok().map(<[u8]>::to_vec)
}
