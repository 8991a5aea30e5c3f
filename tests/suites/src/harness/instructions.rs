//! Instructions that a loader executes in user mode, counted by valgrind's callgrind. Owns the command line and the reading of
//! its file.

use super::{Context, always, environment};
use anyhow::{Context as _, bail};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Instructions of `LOADER --preload ENDING PROGRAM ARGUMENTS` to its end; `ending` is a library whose first initialiser ends
/// the process.
pub fn instructions(
    context: &Context,
    loader: &Path,
    ending: &Path,
    program: &Path,
    arguments: &[&str],
) -> anyhow::Result<u64> {
    let file = context.work.join("callgrind.out");
    let mut command = Command::new("valgrind");
    command.args(["-q", "--tool=callgrind"]).arg(format!("--callgrind-out-file={}", file.display()));
    command.arg(loader).arg("--preload").arg(ending).arg(program).args(arguments);
    command.env_clear().envs(environment()).envs(always()).stdin(Stdio::null());
    let outcome = command.output().context("valgrind (Debian package valgrind)")?;
    if !outcome.status.success() {
        bail!("{command:?} ended with {}: {}", outcome.status, String::from_utf8_lossy(&outcome.stderr));
    }
    let text = fs::read_to_string(&file).with_context(|| format!("{}: {command:?}", file.display()))?;
    fs::remove_file(&file)?;
    let total = text.lines().find_map(|line| line.strip_prefix("summary: ").or_else(|| line.strip_prefix("totals: ")));
    total.context("callgrind's file has no summary")?.trim().parse().context("callgrind's summary")
}
