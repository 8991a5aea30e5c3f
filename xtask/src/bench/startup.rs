//! Starting one file under two loaders, in turn, and timing each from before vfork to after wait. Both copies of a program
//! differ in the PT_INTERP string alone, and all else (environment, standard streams, path length) is equal. Which loader
//! ran is asserted once a program, outside the timed rounds.

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use rtld_suites::harness::{Context, Run, Status, Way, copy_with_interpreter, environment};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Name, file and arguments that end at once.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("true", "/bin/true", &[]),
    ("bash", "/bin/bash", &["--norc", "-c", ":"]),
    ("git", "/usr/bin/git", &["--version"]),
    ("python3", "/usr/bin/python3", &["-S", "-E", "-c", "pass"]),
    ("gdb", "/usr/bin/gdb", &["--version"]),
    ("clang", "/usr/bin/clang", &["--version"]),
];

/// Wall time of one process, microseconds.
pub struct Times {
    /// The shortest.
    pub minimum: f64,
    /// The median.
    pub median: f64,
}

impl Times {
    /// The least and the median of the values.
    pub fn of(values: Vec<f64>) -> Self {
        Self { minimum: values.iter().copied().fold(f64::INFINITY, f64::min), median: median(values) }
    }
}

/// One program under both loaders.
pub struct Comparison {
    /// The command, as measured.
    pub command: String,
    /// Under our loader.
    pub ours: Times,
    /// Under ld-linux.
    pub theirs: Times,
    /// Median over the rounds of ours divided by theirs.
    pub ratio: f64,
}

/// Measures every program; what does not run is an error in its place.
pub fn measure(context: &Context, rounds: usize) -> anyhow::Result<Vec<(&'static str, anyhow::Result<Comparison>)>> {
    let total = u64::try_from(PROGRAMS.len() * rounds)?;
    // Drawn on standard error, and only if that is a terminal.
    let bar = ProgressBar::new(total).with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} {msg} {eta}")?);
    let mut results = Vec::new();
    for &(name, program, arguments) in PROGRAMS {
        bar.set_message(name);
        results.push((name, compare(context, name, Path::new(program), arguments, rounds, &bar)));
    }
    bar.finish_and_clear();
    Ok(results)
}

fn compare(
    context: &Context,
    name: &str,
    program: &Path,
    arguments: &[&str],
    rounds: usize,
    bar: &ProgressBar,
) -> anyhow::Result<Comparison> {
    let file = program.canonicalize().with_context(|| program.display().to_string())?;
    // Names of equal length: the path lies on the program's stack.
    let theirs = place(context, name, &file, "theirs")?;
    let ours = place(context, name, &file, "our-ld")?;
    fs::copy(&file, &theirs)?;
    copy_with_interpreter(&file, &ours, &context.loader)?;
    for (copy, way) in [(&ours, Way::Interpreter), (&theirs, Way::Reference)] {
        let outcome = Run::new(copy).way(way).argument_zero(program).args(arguments).output(context)?;
        if outcome.status != Status::Exit(0) {
            bail!("{}", outcome.describe());
        }
    }
    let mut times = (Vec::new(), Vec::new());
    let mut ratios = Vec::new();
    for round in 0..=rounds {
        // Who goes first alternates too.
        let pair = if round % 2 == 0 {
            let ours = once(&ours, program, arguments)?;
            (ours, once(&theirs, program, arguments)?)
        } else {
            let theirs = once(&theirs, program, arguments)?;
            (once(&ours, program, arguments)?, theirs)
        };
        // The first round warms the page cache.
        if round > 0 {
            times.0.push(pair.0);
            times.1.push(pair.1);
            ratios.push(pair.0 / pair.1);
            bar.inc(1);
        }
    }
    let command = format!("{} {}", file.display(), arguments.join(" "));
    Ok(Comparison { command, ours: Times::of(times.0), theirs: Times::of(times.1), ratio: median(ratios) })
}

/// Where a copy lies: in a `bin` beside a `lib` that is the original's, for programs with `$ORIGIN/../lib`.
fn place(context: &Context, name: &str, file: &Path, who: &str) -> anyhow::Result<PathBuf> {
    let directory = context.work.join(who).join(name);
    fs::create_dir_all(directory.join("bin"))?;
    let library = file.parent().and_then(Path::parent).context("a program lies in a directory")?.join("lib");
    if library.is_dir() {
        symlink(&library, directory.join("lib"))?;
    }
    Ok(directory.join("bin").join(file.file_name().context("a program has a name")?))
}

/// One start to its end, microseconds. `Command` without a hook before exec uses posix_spawn, which is vfork in glibc.
fn once(copy: &Path, program: &Path, arguments: &[&str]) -> anyhow::Result<f64> {
    let mut command = Command::new(copy);
    command.arg0(program).args(arguments).env_clear().envs(environment()).env("LD_FALLBACK", "never");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.spawn()?.wait()?;
    let time = start.elapsed();
    if !status.success() {
        bail!("{} ended with {status}", copy.display());
    }
    Ok(time.as_secs_f64() * 1e6)
}

/// The middle value; not a number of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_value() {
        assert_eq!(median(vec![9.0, 1.0, 5.0]), 5.0);
        assert!(median(Vec::new()).is_nan());
    }
}
