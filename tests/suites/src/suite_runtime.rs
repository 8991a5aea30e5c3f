//! Suite and soak `runtime` (issue 6): eight threads of mixed load under a 10 kHz timer, forks meanwhile; afterwards what is held is
//! what was held after the first second. The same with everything built for ThreadSanitizer.
//! Owns the builds and what must be reached; the program counts.

use crate::figures::Figures;
use crate::harness::{Build, Context, Report, Run};
use anyhow::Result;
use std::path::PathBuf;

/// How long the suite runs, and the soak unless it is told.
const SECONDS: u64 = 30;
/// What half a minute must reach, be the machine busy with other things: handler runs that completed, forks, forks while another
/// thread was inside dlopen. Longer soaks reach more handler runs, and 100,000 in all once they last that long.
const RUNS: u64 = 20_000;
const MOST_RUNS: u64 = 100_000;
const FORKS: u64 = 300;
const FORKS_IN_OPEN: u64 = 100;
/// Forks where the sanitizer watches: so many a second, and at the most. Each takes longer the more memory the sanitizer has made.
const WATCHED_FORKS: (u64, u64) = (6, 60);
/// Of the resident memory after the first second so much may have come: some 40 KiB. A byte lost in each round would be 500 KiB.
const PER_MILLE: u64 = 10;
/// Seconds past the asked-for ones: a child may take its 60.
const GRACE: u64 = 120;

/// Half a minute, the last five seconds of it with ThreadSanitizer.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    soak(context, report, Kind::Plain, SECONDS - 5)?;
    soak(context, report, Kind::Watched, 5)
}

/// The soak: `--seconds`, or a minute, then a third of that with ThreadSanitizer.
pub fn run_long(context: &Context, report: &mut Report) -> Result<()> {
    let seconds = context.seconds.unwrap_or(2 * SECONDS);
    soak(context, report, Kind::Plain, seconds)?;
    soak(context, report, Kind::Watched, seconds.div_ceil(3))
}

/// How the program and its plug-ins are built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    /// With ThreadSanitizer, which reports races between the program's threads, and whose runtime replaces much of libc.
    Watched,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Watched => "thread-sanitizer",
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["-O1"],
            Self::Watched => &["-O1", "-g", "-fsanitize=thread"],
        }
    }
}

fn build(context: &Context, kind: Kind) -> Result<PathBuf> {
    let place = |name: &str| format!("{}/{name}", kind.name());
    let beside = ["-Wl,-z,lazy", "-Wl,-rpath,$ORIGIN"];
    let library = |source: &str, name: &str| Build::new(source).shared().flags(kind.flags()).output(place(name));
    let provider = library("runtime/provider.c", "libprovider.so").build(context)?;
    let catcher = library("runtime/soak_catcher.cpp", "libcatcher.so").build(context)?;
    library("runtime/child_plugin.c", "libchild.so").flags(&beside).with(&provider).build(context)?;
    library("runtime/soak_plugin.cpp", "libsoak.so").flags(&beside).with(&provider).build(context)?;
    for number in 1..=4 {
        let name = format!("libbusy{number}.so");
        let soname = format!("-Wl,-soname,{name}");
        library("runtime/busy_plugin.c", &name).flags(&beside).flag(soname).with(&provider).build(context)?;
    }
    let program = Build::new("runtime/soak.c").flags(kind.flags()).flags(&beside).flags(&["-pthread", "-fno-builtin"]);
    program.with(&provider).with(&catcher).output(place("soak")).build(context)
}

fn soak(context: &Context, report: &mut Report, kind: Kind, seconds: u64) -> Result<()> {
    let program = build(context, kind)?;
    let (forks, in_open) = match kind {
        Kind::Plain => (FORKS, FORKS_IN_OPEN),
        Kind::Watched => {
            let forks = WATCHED_FORKS.1.min(WATCHED_FORKS.0 * seconds);
            (forks, forks / 3)
        }
    };
    let mut run = Run::new(&program).args([seconds.to_string(), forks.to_string()]).limit(seconds + GRACE);
    if let Some(directory) = program.parent() {
        run = run.directory(directory);
    }
    if kind == Kind::Watched {
        run = run.env("TSAN_OPTIONS", "exitcode=66");
    }
    let name = format!("6 soak, {} for {seconds} s", kind.name());
    let Some(figures) = Figures::of(context, report, &name, &run) else { return Ok(()) };
    figures.all_zero(report, &["hung", "lost", "wrong"]);
    figures.is(report, "forks", &forks.to_string());
    figures.at_least(report, "in_open", in_open);
    if kind == Kind::Plain {
        figures.all_zero(report, &["mappings_more", "descriptors_more", "modules_more"]);
        figures.at_most(report, "resident_per_mille", PER_MILLE);
        figures.at_least(report, "handled", (RUNS * seconds / SECONDS).max(if seconds >= 60 { MOST_RUNS } else { 0 }));
    }
    Ok(())
}
