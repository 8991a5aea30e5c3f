//! A private mount namespace for tests that need other files in /etc or in the default library directories: owns the
//! mounts. It may not change anything that a process outside the namespace sees.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::harness::Context;

/// The mounts of the calling thread's namespace. Gone when the thread and the processes it started are.
pub struct Namespace {
    scratch: PathBuf,
}

impl Namespace {
    /// Puts a writable overlay over `directory`: what is written into it stays in memory.
    pub fn overlay(&self, directory: &str) -> Result<()> {
        let name = directory.replace('/', "_");
        let upper = self.scratch.join(format!("upper{name}"));
        let inner = self.scratch.join(format!("inner{name}"));
        fs::create_dir(&upper)?;
        fs::create_dir(&inner)?;
        let options = format!("lowerdir={directory},upperdir={},workdir={}", upper.display(), inner.display());
        mount(Some("overlay"), directory, Some("overlay"), MsFlags::empty(), Some(options.as_str())).with_context(
            || format!("cannot mount an overlay over {directory} (the kernel needs overlayfs, we need CAP_SYS_ADMIN)"),
        )
    }
}

/// Runs `body` in a new mount namespace, on a thread of its own. Processes started by `body` are in the namespace too.
/// Without the privilege the answer is an error that says so: a check that cannot run has failed.
pub fn in_namespace<T: Send>(context: &Context, body: impl FnOnce(&Namespace) -> Result<T> + Send) -> Result<T> {
    let scratch = context.work.join("scratch");
    fs::create_dir_all(&scratch)?;
    let enter = || -> Result<T> {
        unshare(CloneFlags::CLONE_NEWNS)
            .context("cannot make a mount namespace (CAP_SYS_ADMIN needed: run as root)")?;
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
            .context("cannot make mounts private")?;
        mount(Some("tmpfs"), &scratch, Some("tmpfs"), MsFlags::empty(), None::<&str>)
            .context("cannot mount a tmpfs")?;
        body(&Namespace { scratch: scratch.clone() })
    };
    std::thread::scope(|scope| {
        scope.spawn(enter).join().map_err(|_| anyhow!("the thread in the namespace panicked"))?
    })
}

/// Copies one file, keeping its mode, and makes the directories above it.
pub fn place(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}
