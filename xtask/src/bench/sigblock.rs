//! `cargo xtask bench sigblock`: what a section costs in each back end, ld-linux beside it. Owns the order of the runs: in every
//! round each program runs once in every variant, and who goes first moves on by one. What is run lies in `cases`, what the
//! figures must show in `claims`, how they are printed and written in `figures`.

mod cases;
mod claims;
mod figures;

use super::Settings;
use crate::artifact;
use anyhow::{Context as _, bail};
use cases::{Case, Variant};
use figures::Row;
use indicatif::{ProgressBar, ProgressStyle};
use rtld_suites::harness::{Context, Workshop};
use std::fs;

/// Rounds without which `--check` says nothing: a median of fewer is no evidence.
const ENOUGH_ROUNDS: usize = 30;

/// Measures; true unless `check` is set and a claim does not hold. A program that does not run is an error.
pub fn sigblock(settings: &Settings<'_>) -> anyhow::Result<bool> {
    if settings.check && settings.rounds < ENOUGH_ROUNDS {
        bail!("--check needs at least {ENOUGH_ROUNDS} rounds");
    }
    let loader = match settings.loader {
        Some(path) => path.to_owned(),
        None => artifact::build()?,
    };
    let workshop = Workshop::open(&loader)?;
    let context = workshop.context("sigblock")?;
    let rows = measure(&context, settings.rounds)?;
    figures::print(&rows, settings.rounds);
    if let Some(path) = settings.json {
        let report = figures::json(&rows, settings.rounds, &loader);
        fs::write(path, serde_json::to_string_pretty(&report)? + "\n").with_context(|| path.display().to_string())?;
    }
    workshop.close(&context)?;
    let mut all = true;
    for claim in claims::judge(&rows)? {
        println!("{} {}: {}", if claim.holds { "holds" } else { "FAILS" }, claim.words, claim.measured);
        all &= claim.holds;
    }
    Ok(all || !settings.check)
}

/// Proves each program once in each variant, then runs the rounds.
fn measure(context: &Context, rounds: usize) -> anyhow::Result<Vec<Row>> {
    let cases = cases::build(context)?;
    for case in &cases {
        for variant in Variant::ALL {
            case.prove(context, variant).with_context(|| format!("{} in variant {}", case.name, variant.name()))?;
        }
    }
    let total = u64::try_from(cases.len() * rounds)?;
    // Drawn on standard error, and only if that is a terminal.
    let bar = ProgressBar::new(total).with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} {msg} {eta}")?);
    let mut rows = Vec::new();
    for round in 0..=rounds {
        for case in &cases {
            bar.set_message(case.name);
            run_round(context, case, round, &mut rows)?;
            bar.inc(u64::from(round > 0));
        }
    }
    bar.finish_and_clear();
    Ok(rows)
}

/// One run of a program in every variant. Round 0 warms the page cache and is not counted.
fn run_round(context: &Context, case: &Case, round: usize, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let mut order = Variant::ALL;
    order.rotate_left(round % Variant::ALL.len());
    for variant in order {
        let phases =
            case.time(context, variant).with_context(|| format!("{} in variant {}", case.name, variant.name()))?;
        for phase in phases {
            if round > 0 && case.rows.contains(&phase.name.as_str()) {
                figures::add(rows, case.name, variant, phase);
            }
        }
    }
    Ok(())
}
