//! Suite `memory`: resident and proportional memory of a program as it exits, summed by the kernel over its mappings
//! (proc_pid_smaps_rollup, kernel's Documentation/ABI/testing/procfs-smaps_rollup), against ld-linux in the same run.

use crate::harness::{Context, Report, Run, Way};
use anyhow::Context as _;
use std::fs;

const PROGRAMS: &[(&str, &[&str])] =
    &[("/bin/true", &[]), ("/usr/bin/python3", &["-S", "-c", "pass"]), ("/usr/bin/gdb", &["--version"])];

/// Runs of which the least counts: other processes that come and go change Pss, and what the kernel maps around a fault depends
/// on where each run's libraries lie (100 KiB of Rss in 1600 between runs of one loader).
const RUNS: usize = 9;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for &(program, arguments) in PROGRAMS {
        let run = Run::new(program).args(arguments);
        let theirs = least(context, &run.clone().way(Way::Reference))?;
        for way in [Way::Interpreter, Way::Direct] {
            let name = format!("{program} ({way:?})");
            match least(context, &run.clone().way(way)) {
                Ok(ours) => {
                    report.note(format!(
                        "{name}, KiB: Rss {} (ld-linux {}), Pss {} (ld-linux {})",
                        ours.rss, theirs.rss, ours.pss, theirs.pss
                    ));
                    report.check(format!("{name}: Rss"), within(ours.rss, theirs.rss));
                    report.check(format!("{name}: Pss"), within(ours.pss, theirs.pss));
                }
                Err(error) => report.check(name, Err(format!("{error:#}"))),
            }
        }
    }
    Ok(())
}

/// At most the greater of 1.1 times and 512 KiB more; sizes in KiB.
fn within(ours: u64, theirs: u64) -> Result<(), String> {
    let limit = (theirs + theirs / 10).max(theirs + 512);
    if ours <= limit { Ok(()) } else { Err(format!("expected at most {limit} KiB\ngot      {ours} KiB")) }
}

/// Sizes in KiB.
#[derive(Clone, Copy)]
struct Memory {
    rss: u64,
    pss: u64,
}

fn least(context: &Context, run: &Run) -> anyhow::Result<Memory> {
    let mut least: Option<Memory> = None;
    for _ in 0..RUNS {
        let mut seen = None;
        let outcome = run.output_inspected(context, &mut |process| {
            seen = Some(memory_of(process)?);
            Ok(())
        })?;
        outcome.succeeded().map_err(anyhow::Error::msg)?;
        let seen = seen.context("the program did not stop at its exit")?;
        least = Some(least.map_or(seen, |old| Memory { rss: old.rss.min(seen.rss), pss: old.pss.min(seen.pss) }));
    }
    least.context("no run")
}

fn memory_of(process: i32) -> anyhow::Result<Memory> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).context("no such field")?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().with_context(|| line.to_owned())
    };
    Ok(Memory { rss: field("Rss")?, pss: field("Pss")? })
}
