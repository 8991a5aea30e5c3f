//! A private root with the large programs: the packages and all they need, fetched by apt and unpacked without their
//! scripts, with a cache of libraries of its own. Owns `target/bench/root` and the mount namespace in which it stands in the
//! place of /usr; nothing of the system is changed.

use super::programs;
use super::stage::store;
use anyhow::{Context as _, anyhow, bail};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Beside the rows' packages: the growth bench's other loader, the counter of instructions, and the shell that its launcher needs.
const OTHERS: [&str; 3] = ["musl", "valgrind", "dash"];
/// Directories that Debian's alternatives would lead to.
const ALTERNATIVES: &str = "/usr/lib/x86_64-linux-gnu/blas\n/usr/lib/x86_64-linux-gnu/lapack\n";

/// The root on disk.
pub struct Root {
    directory: PathBuf,
}

impl Root {
    /// The root that an earlier `--install` left.
    pub fn existing() -> Option<Root> {
        let directory = store().ok()?.join("root");
        directory.join("complete").exists().then_some(Root { directory })
    }

    /// Fetches and unpacks, unless that was done.
    pub fn install() -> anyhow::Result<()> {
        let store = store()?;
        if Self::existing().is_some() {
            return Ok(());
        }
        let root = store.join("root");
        let archives = store.join("archives");
        fetch(&store, &archives)?;
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        fs::create_dir_all(root.join("usr"))?;
        for name in ["bin", "lib", "lib32", "lib64", "sbin"] {
            fs::create_dir_all(root.join("usr").join(name))?;
            symlink(Path::new("usr").join(name), root.join(name))?;
        }
        for entry in fs::read_dir(&archives)? {
            let path = entry?.path();
            if path.extension().is_some_and(|suffix| suffix == "deb") {
                unpack(&path, &root)?;
            }
        }
        fs::create_dir_all(root.join("etc/ld.so.conf.d"))?;
        fs::write(root.join("etc/ld.so.conf.d/bench.conf"), ALTERNATIVES)?;
        fs::write(root.join("etc/ld.so.conf"), "include /etc/ld.so.conf.d/*.conf\n")?;
        run(Command::new("ldconfig").arg("-r").arg(&root))?;
        fs::remove_dir_all(&archives)?;
        fs::write(root.join("complete"), "")?;
        Ok(())
    }

    /// A file of the root, seen from outside.
    pub fn file(&self, path: &str) -> PathBuf {
        self.directory.join(path.trim_start_matches('/'))
    }

    /// Runs `body` on a thread for which, and for whose processes, the root's /usr and cache stand in the place of the system's.
    pub fn inside<T: Send>(&self, body: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
        let enter = || -> anyhow::Result<T> {
            unshare(CloneFlags::CLONE_NEWNS).context("a mount namespace needs CAP_SYS_ADMIN: run as root")?;
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
            for path in ["/usr", "/etc/ld.so.cache"] {
                mount(Some(&self.file(path)), path, none, MsFlags::MS_BIND, none).with_context(|| path.to_owned())?;
            }
            body()
        };
        std::thread::scope(|scope| {
            scope.spawn(enter).join().map_err(|_| anyhow!("the thread in the namespace panicked"))?
        })
    }
}

/// Downloads the packages and all that they need, as for a system with nothing on it.
fn fetch(store: &Path, archives: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(archives.join("partial"))?;
    let status = store.join("status");
    fs::write(&status, "")?;
    let mut command = Command::new("apt-get");
    for option in [
        format!("Dir::State::status={}", status.display()),
        format!("Dir::Cache::archives={}", archives.display()),
        "APT::Install-Recommends=false".to_owned(),
        "Debug::NoLocking=true".to_owned(),
    ] {
        command.args(["-o", &option]);
    }
    command.args(["--yes", "--quiet", "--download-only", "install"]);
    run(command.args(programs::packages()).args(OTHERS))
}

/// Unpacks one package; directories that are links stay links.
fn unpack(package: &Path, root: &Path) -> anyhow::Result<()> {
    let mut reader = Command::new("dpkg-deb").arg("--fsys-tarfile").arg(package).stdout(Stdio::piped()).spawn()?;
    let tar = reader.stdout.take().context("a pipe")?;
    let mut writer = Command::new("tar");
    run(writer.args(["--extract", "--keep-directory-symlink", "--directory"]).arg(root).stdin(tar))?;
    if !reader.wait()?.success() {
        bail!("dpkg-deb cannot read {}", package.display());
    }
    Ok(())
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdout(Stdio::null()).status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
