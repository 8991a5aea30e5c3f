//! `cargo xtask bench`: figures. Owns what the benches of starting and of dlopen print and write, with no verdict about speed;
//! measuring lies in one file a bench, and `sigblock` judges its own figures.

mod dlopen;
mod sigblock;
mod startup;

use crate::artifact;
use anyhow::Context as _;
use rtld_suites::harness::{Context, Workshop};
pub use sigblock::sigblock;
use startup::Comparison;
use std::fs;
use std::path::Path;

/// What a bench measured: a name, and both loaders' times or why there are none.
type Results = Vec<(&'static str, anyhow::Result<Comparison>)>;

/// Where a bench's figures go, and what it measures.
pub struct Settings<'a> {
    /// Alternating rounds.
    pub rounds: usize,
    /// A file for the figures.
    pub json: Option<&'a Path>,
    /// Whether what does not run on our loader, or does not hold, is a failure.
    pub check: bool,
    /// A loader in place of the artifact.
    pub loader: Option<&'a Path>,
}

/// Times the start of programs under either loader; true unless `check` is set and something did not run on ours.
pub fn startup(settings: &Settings<'_>) -> anyhow::Result<bool> {
    let words = "wall time from vfork to wait, us";
    bench("startup", "program", words, settings, startup::measure)
}

/// Times dlopen and dlclose under either loader; true unless `check` is set and something did not run on ours.
pub fn dlopen(settings: &Settings<'_>) -> anyhow::Result<bool> {
    let words = "time of dlopen and dlclose together, us";
    bench("dlopen", "libraries", words, settings, dlopen::measure)
}

fn bench(
    name: &str,
    column: &str,
    words: &str,
    settings: &Settings<'_>,
    measure: fn(&Context, usize) -> anyhow::Result<Results>,
) -> anyhow::Result<bool> {
    let loader = match settings.loader {
        Some(path) => path.to_owned(),
        None => artifact::build()?,
    };
    let rounds = settings.rounds;
    let workshop = Workshop::open(&loader)?;
    let context = workshop.context(name)?;
    let results = measure(&context, rounds)?;
    println!("{words}, of {rounds} alternating rounds; ratio: median of ours / ld-linux in each round");
    println!(
        "{column:10} {:>12} {:>12} {:>12} {:>12} {:>8}",
        "ours min", "ours median", "theirs min", "their median", "ratio"
    );
    let mut all = true;
    let mut list = Vec::new();
    for (case, result) in results {
        match result {
            Ok(times) => {
                let (ours, theirs) = (&times.ours, &times.theirs);
                println!(
                    "{case:10} {:12.1} {:12.1} {:12.1} {:12.1} {:8.3}",
                    ours.minimum, ours.median, theirs.minimum, theirs.median, times.ratio
                );
                list.push(serde_json::json!({
                    "program": case,
                    "command": times.command,
                    "ours_us": { "minimum": ours.minimum, "median": ours.median },
                    "ld_linux_us": { "minimum": theirs.minimum, "median": theirs.median },
                    "ratio": times.ratio,
                }));
            }
            Err(error) => {
                all = false;
                println!("{case:10} did not run: {error:#}");
                list.push(serde_json::json!({ "program": case, "error": format!("{error:#}") }));
            }
        }
    }
    if let Some(path) = settings.json {
        let report = serde_json::json!({ "bench": name, "rounds": rounds, "loader": loader, "programs": list });
        fs::write(path, serde_json::to_string_pretty(&report)? + "\n").with_context(|| path.display().to_string())?;
    }
    workshop.close(&context)?;
    Ok(all || !settings.check)
}
