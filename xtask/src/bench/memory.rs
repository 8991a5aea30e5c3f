//! `bench memory`: the most memory that a start ever has resident (VmHWM of proc_pid_status), and its proportional share as the
//! first initialiser runs (Pss of smaps_rollup), under either loader. Ours may be 5 % or 512 KiB larger.

use super::stage::{self, Staged};
use super::{Settings, Verdict};
use anyhow::Context as _;
use rtld_suites::harness::{Context, Way};
use serde_json::{Value, json};
use std::fs;

/// KiB that ours may have more, where 5 % are less.
const SMALL: u64 = 512;

/// Sizes in KiB.
#[derive(Clone, Copy)]
struct Memory {
    peak: u64,
    pss: u64,
}

/// Measures every row that can be measured here; whether all of them hold, and the report.
pub fn measure(context: &Context, settings: &Settings<'_>) -> anyhow::Result<(bool, Value)> {
    println!(
        "memory of a start to the first initialiser, KiB: peak Rss, and Pss at its end; least of {} runs",
        settings.rounds
    );
    println!(
        "{:13} {:>10} {:>10} {:>7} {:>10} {:>10} {:>7}",
        "program", "ours Rss", "ld-linux", "ratio", "ours Pss", "ld-linux", "ratio"
    );
    let mut holds = true;
    let mut list = Vec::new();
    let rest = stage::each(
        context,
        |_| true,
        settings.only,
        |staged| {
            let (ours, theirs) = least(context, staged, settings.rounds)?;
            let verdict = verdict(ours.peak, theirs.peak).max(verdict(ours.pss, theirs.pss));
            let ratio = |ours: u64, theirs: u64| ours as f64 / theirs as f64;
            println!(
                "{:13} {:10} {:10} {:7.3} {:10} {:10} {:7.3}  {verdict}",
                staged.program.name,
                ours.peak,
                theirs.peak,
                ratio(ours.peak, theirs.peak),
                ours.pss,
                theirs.pss,
                ratio(ours.pss, theirs.pss),
            );
            holds &= verdict != Verdict::Misses;
            list.push(json!({
                "program": staged.program.name,
                "ours_kib": { "peak_rss": ours.peak, "pss": ours.pss },
                "ld_linux_kib": { "peak_rss": theirs.peak, "pss": theirs.pss },
            }));
            Ok(())
        },
    )?;
    let all_ran = rest.tell();
    Ok((holds && all_ran, Value::Array(list)))
}

/// At most the greater of 1.05 times and 512 KiB more; aimed at is no more.
fn verdict(ours: u64, theirs: u64) -> Verdict {
    let limit = (theirs + theirs / 20).max(theirs + SMALL);
    Verdict::of(ours as f64, limit as f64, theirs as f64)
}

/// The least of both, in turn: other processes that come and go change Pss, and page cache state changes Rss.
fn least(context: &Context, staged: &Staged, runs: usize) -> anyhow::Result<(Memory, Memory)> {
    let none = Memory { peak: u64::MAX, pss: u64::MAX };
    let mut least = (none, none);
    for _ in 0..runs {
        for (way, least) in [(Way::Interpreter, &mut least.0), (Way::Reference, &mut least.1)] {
            let mut seen = None;
            let outcome = staged.run(way).output_inspected(context, &mut |process| {
                seen = Some(memory_of(process)?);
                Ok(())
            })?;
            outcome.succeeded().map_err(anyhow::Error::msg)?;
            let seen = seen.context("the program did not stop at its exit")?;
            *least = Memory { peak: least.peak.min(seen.peak), pss: least.pss.min(seen.pss) };
        }
    }
    Ok(least)
}

fn memory_of(process: i32) -> anyhow::Result<Memory> {
    let field = |file: &str, name: &str| -> anyhow::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{process}/{file}"))?;
        let mut lines = text.lines();
        let line =
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).with_context(|| name.to_owned())?;
        line.trim().trim_end_matches("kB").trim().parse().with_context(|| line.to_owned())
    };
    Ok(Memory { peak: field("status", "VmHWM")?, pss: field("smaps_rollup", "Pss")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_programs_may_have_half_a_mebibyte_more() {
        assert_eq!(verdict(1000, 1000), Verdict::Aim);
        assert_eq!(verdict(1512, 1000), Verdict::Must);
        assert_eq!(verdict(1513, 1000), Verdict::Misses);
        assert_eq!(verdict(105_000, 100_000), Verdict::Must);
        assert_eq!(verdict(105_001, 100_000), Verdict::Misses);
    }
}
