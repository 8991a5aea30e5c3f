//! `cargo xtask bench`: figures, never verdicts about speed. Owns what is printed and written; measuring lies in `startup`.

mod startup;

use crate::artifact;
use anyhow::Context as _;
use rtld_suites::harness::Workshop;
use std::fs;
use std::path::Path;

/// Times the start of programs under either loader; true unless `check` is set and something did not run on ours.
pub fn startup(
    rounds: usize,
    json: Option<&Path>,
    check: bool,
    loader: Option<&Path>,
) -> anyhow::Result<bool> {
    let loader = match loader {
        Some(path) => path.to_owned(),
        None => artifact::build()?,
    };
    let workshop = Workshop::open(&loader)?;
    let context = workshop.context("startup")?;
    let results = startup::measure(&context, rounds)?;
    println!(
        "wall time from vfork to wait, us, of {rounds} alternating rounds; ratio: median of ours / ld-linux in each round"
    );
    println!(
        "{:10} {:>12} {:>12} {:>12} {:>12} {:>8}",
        "program", "ours min", "ours median", "theirs min", "their median", "ratio"
    );
    let mut all = true;
    let mut list = Vec::new();
    for (name, result) in results {
        match result {
            Ok(times) => {
                let (ours, theirs) = (&times.ours, &times.theirs);
                println!(
                    "{name:10} {:12.0} {:12.0} {:12.0} {:12.0} {:8.3}",
                    ours.minimum, ours.median, theirs.minimum, theirs.median, times.ratio
                );
                list.push(serde_json::json!({
                    "program": name,
                    "command": times.command,
                    "ours_us": { "minimum": ours.minimum, "median": ours.median },
                    "ld_linux_us": { "minimum": theirs.minimum, "median": theirs.median },
                    "ratio": times.ratio,
                }));
            }
            Err(error) => {
                all = false;
                println!("{name:10} did not run: {error:#}");
                list.push(serde_json::json!({ "program": name, "error": format!("{error:#}") }));
            }
        }
    }
    if let Some(path) = json {
        let report = serde_json::json!({ "bench": "startup", "rounds": rounds, "loader": loader, "programs": list });
        fs::write(path, serde_json::to_string_pretty(&report)? + "\n")
            .with_context(|| path.display().to_string())?;
    }
    workshop.close(&context)?;
    Ok(all || !check)
}
