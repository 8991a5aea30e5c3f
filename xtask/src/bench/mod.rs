//! `cargo xtask bench`: figures. Owns what all benches share: building or being given the loader, the report's file, and the
//! verdict about a figure. Measuring lies in one file a bench; `programs` says what the benches of starting must show, and
//! `sigblock` judges its own figures.

mod dlopen;
mod growth;
mod instructions;
mod memory;
mod plot;
mod programs;
mod root;
mod sigblock;
mod stage;
mod startup;

use crate::artifact;
use anyhow::{Context as _, ensure};
use rtld_suites::harness::{Context, Workshop};
use serde_json::Value;
pub use sigblock::sigblock;
use std::fmt;
use std::fs;
use std::path::Path;

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
    /// Rows by name; all if none.
    pub only: &'a [String],
    /// Whether programs that are missing are fetched.
    pub install: bool,
}

/// What a figure came to, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As good as is aimed at.
    Aim,
    /// As good as it must be.
    Must,
    /// Not good enough.
    Misses,
}

impl Verdict {
    /// Of a figure that is better the smaller it is; not a number is not good enough.
    pub fn of(figure: f64, must: f64, aim: f64) -> Self {
        if figure <= aim {
            Self::Aim
        } else if figure <= must {
            Self::Must
        } else {
            Self::Misses
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aim => "aim",
            Self::Must => "holds",
            Self::Misses => "MISSES",
        })
    }
}

/// The least number of rounds whose figures may be judged.
const JUDGED: usize = 31;

/// Times the start of programs under either loader; true unless `check` is set and a row misses what it must show.
pub fn startup(settings: &Settings<'_>) -> anyhow::Result<bool> {
    ensure!(!settings.check || settings.rounds >= JUDGED, "--check wants at least {JUDGED} rounds");
    bench("startup", settings, startup::measure)
}

/// Resident memory of a start under either loader; true unless `check` is set and a row misses.
pub fn memory(settings: &Settings<'_>) -> anyhow::Result<bool> {
    bench("memory", settings, memory::measure)
}

/// Instructions of a start under either loader.
pub fn instructions(settings: &Settings<'_>) -> anyhow::Result<bool> {
    bench("instructions", settings, instructions::measure)
}

/// Time of a start against the number of libraries and of symbols, under three loaders; draws docs/startup-growth.svg.
pub fn growth(settings: &Settings<'_>) -> anyhow::Result<bool> {
    bench("growth", settings, growth::measure)
}

/// Times dlopen and dlclose under either loader; true unless `check` is set and something did not run on ours.
pub fn dlopen(settings: &Settings<'_>) -> anyhow::Result<bool> {
    bench("dlopen", settings, dlopen::report)
}

/// Runs one bench and writes its report.
fn bench(
    name: &str,
    settings: &Settings<'_>,
    measure: fn(&Context, &Settings<'_>) -> anyhow::Result<(bool, Value)>,
) -> anyhow::Result<bool> {
    let loader = match settings.loader {
        Some(path) => path.to_owned(),
        None => artifact::build()?,
    };
    if settings.install {
        root::Root::install()?;
    }
    let workshop = Workshop::open(&loader)?;
    let context = workshop.context(name)?;
    let (holds, figures) = measure(&context, settings)?;
    if let Some(path) = settings.json {
        let rounds = settings.rounds;
        let report = serde_json::json!({ "bench": name, "rounds": rounds, "loader": loader, "programs": figures });
        fs::write(path, serde_json::to_string_pretty(&report)? + "\n").with_context(|| path.display().to_string())?;
    }
    workshop.close(&context)?;
    if !holds {
        println!("bench {name}: not all rows hold");
    } else if settings.check {
        println!("bench {name}: all rows measured hold");
    }
    Ok(holds || !settings.check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_must_be_a_number_within_its_bound() {
        assert_eq!(Verdict::of(0.5, 0.6, 0.5), Verdict::Aim);
        assert_eq!(Verdict::of(0.6, 0.6, 0.5), Verdict::Must);
        assert_eq!(Verdict::of(0.61, 0.6, 0.5), Verdict::Misses);
        assert_eq!(Verdict::of(f64::NAN, 0.6, 0.5), Verdict::Misses);
    }
}
