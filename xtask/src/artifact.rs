//! Building the artifacts (the loader, people's tool, libsigblock) and running a program on them. They are left as copies of
//! mode 0755 under fixed names, whatever cargo calls its own output.

use anyhow::{Context as _, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the artifacts; the loader's path.
pub fn build() -> anyhow::Result<PathBuf> {
    // One cargo run for each: built together, they would get one another's features.
    cargo(&["build", "--quiet", "--release", "--package", "rtld-ld"])?;
    cargo(&["build", "--quiet", "--release", "--package", "rtld-cli"])?;
    cargo(&["build", "--quiet", "--release", "--package", "libsigblock"])?;
    let release = target_directory().join("release");
    let loader = release.join("ld-elf.so.1");
    install(&release.join("libld_elf.so"), &loader)?;
    // Onto itself: cargo's own file of this name is a link into its cache, of whatever mode the umask gives.
    install(&release.join("rtld"), &release.join("rtld"))?;
    install(&release.join("libsigblock_library.so"), &release.join("libsigblock.so"))?;
    install(&release.join("libsigblock_library.a"), &release.join("libsigblock.a"))?;
    Ok(loader)
}

/// Builds, then becomes the program on the loader; never the fallback.
pub fn run(mut program: Vec<String>) -> anyhow::Result<bool> {
    let loader = build()?;
    if program.is_empty() {
        let hello = "import os; print('hello from python3 on', os.environ['RTLD_LOADER'])";
        program = ["/usr/bin/python3", "-c", hello].map(str::to_owned).to_vec();
    }
    let mut command = Command::new(&loader);
    if let Some(name) = program.first_mut() {
        *name = on_path(name);
    }
    command.args(program).env("LD_FALLBACK", "never").env("RTLD_LOADER", loader.canonicalize()?);
    Err(command.exec()).with_context(|| loader.display().to_string())
}

/// The file that a shell would run for `name`: the loader does not search PATH.
fn on_path(name: &str) -> String {
    if name.contains('/') {
        return name.to_owned();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
    found.map_or_else(|| name.to_owned(), |file| file.to_string_lossy().into_owned())
}

/// Runs cargo in the workspace; an error if it fails.
pub fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    let status = cargo_command().args(arguments).status().context("cargo")?;
    if !status.success() {
        bail!("cargo {} failed", arguments.join(" "));
    }
    Ok(())
}

/// The cargo that runs this.
pub fn cargo_command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(super::root());
    command
}

/// Where cargo builds.
pub fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| super::root().join("target"), PathBuf::from)
}

/// Copies beside and renames, so that a running loader is never written to.
pub fn install(from: &Path, to: &Path) -> anyhow::Result<()> {
    let fresh = to.with_extension("new");
    fs::copy(from, &fresh).with_context(|| from.display().to_string())?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755))?;
    fs::rename(&fresh, to)?;
    Ok(())
}
