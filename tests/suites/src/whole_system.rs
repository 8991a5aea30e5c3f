//! A whole system on the loader under test: a private mount namespace (and user namespace where not root) in which a
//! copy of /usr/lib64, with our file under the name `ld-linux-x86-64.so.2`, is bound over /usr/lib64. Owns the copy and
//! how a command is started in it; who watches the processes is `process_tree`. The distribution's file stays in its
//! own directory, where our loader finds it as a library: bound onto the name itself, ours would hide it.

use crate::harness::{Context, FileIdentity, always, environment};
use anyhow::{Context as _, bail, ensure};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory that holds the interpreter of Linux x86-64 programs (psABI), itself no symbolic link.
const DIRECTORY: &str = "/usr/lib64";
/// The interpreter's name in it.
const INTERPRETER: &str = "ld-linux-x86-64.so.2";

/// The copy of /usr/lib64 with our loader in it.
#[derive(Debug, Clone)]
pub struct WholeSystem {
    directory: PathBuf,
    /// Our file in the copy.
    pub loader: FileIdentity,
    /// ld-linux.
    pub reference: FileIdentity,
}

impl WholeSystem {
    /// Makes the copy in the suite's work directory.
    pub fn prepare(context: &Context) -> anyhow::Result<Self> {
        ensure!(
            Path::new("/lib64").canonicalize()? == Path::new(DIRECTORY),
            "/lib64 is not {DIRECTORY}: this machine has an unmerged /usr, for which this suite is not written"
        );
        ensure!(
            !context.reference.starts_with(DIRECTORY),
            "ld-linux lies in {DIRECTORY} itself: bound over, it would be hidden from our loader"
        );
        let directory = context.work.join("lib64");
        copy_tree(Path::new(DIRECTORY), &directory)?;
        let place = directory.join(INTERPRETER);
        fs::remove_file(&place).with_context(|| format!("no {DIRECTORY}/{INTERPRETER}"))?;
        fs::copy(&context.loader, &place)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
        Ok(Self { loader: FileIdentity::of(&place)?, reference: FileIdentity::of(&context.reference)?, directory })
    }

    /// A command that runs in the namespace, with the harness's environment and without our fallback.
    pub fn command(&self, program: impl AsRef<Path>) -> anyhow::Result<Command> {
        let mut command = plain(program);
        command.envs(always());
        let namespace = Namespace::new(&self.directory)?;
        // SAFETY: between fork and exec `enter` makes system calls only; its strings were made before.
        unsafe { command.pre_exec(move || namespace.enter()) };
        Ok(command)
    }
}

/// The same command on the machine as it is, for comparison.
pub fn plain(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env_clear().envs(environment().into_iter().filter(|(name, _)| !of_our_own_build(name.as_bytes())));
    command
}

/// Variables that cargo sets for what it runs: they would change what a cargo in the namespace does.
fn of_our_own_build(name: &[u8]) -> bool {
    name.starts_with(b"CARGO") && name != b"CARGO_HOME" || name == b"RUSTC" || name == b"RUSTFLAGS"
}

/// What a child does before exec to be in the namespace, all strings ready.
struct Namespace {
    directory: PathBuf,
    flags: CloneFlags,
    maps: Vec<(&'static str, Vec<u8>)>,
}

impl Namespace {
    fn new(directory: &Path) -> anyhow::Result<Self> {
        let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
        let mut namespace = Self { directory: directory.to_owned(), flags: CloneFlags::CLONE_NEWNS, maps: Vec::new() };
        if !user.is_root() {
            namespace.flags |= CloneFlags::CLONE_NEWUSER;
            // user_namespaces(7): an unprivileged process maps itself only, its group after setgroups is denied.
            namespace.maps.push(("/proc/self/uid_map", format!("{user} {user} 1").into_bytes()));
            namespace.maps.push(("/proc/self/setgroups", b"deny".to_vec()));
            namespace.maps.push(("/proc/self/gid_map", format!("{group} {group} 1").into_bytes()));
        }
        Ok(namespace)
    }

    fn enter(&self) -> io::Result<()> {
        unshare(self.flags)?;
        for (path, text) in &self.maps {
            fs::write(path, text)?;
        }
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
        mount(Some(&self.directory), DIRECTORY, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
        Ok(())
    }
}

/// Copies a directory: files with their modes, symbolic links as such.
fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, &target)?;
        } else if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        } else {
            bail!("{} is neither file, directory nor symbolic link", entry.path().display());
        }
    }
    Ok(())
}
