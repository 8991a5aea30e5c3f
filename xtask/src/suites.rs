//! `cargo xtask test`: unit tests and suites, one count over all. Owns the closing line that CI reads.

use crate::artifact;
use anyhow::{Context as _, bail};
use rtld_suites::harness::{Counts, run_suites};
use rtld_suites::{CASES, SOAKS, SUITES, Suite};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// The name of the unit tests among the suites.
const UNIT: &str = "unit";

/// Prints the suites, and the cases of those whose cases show a clause each.
pub fn list() {
    println!("{UNIT:14} unit tests of the crates that run under std");
    for suite in SUITES {
        println!("{:14} {}", suite.name, suite.summary);
        let cases = CASES.iter().filter(|(name, _)| *name == suite.name).flat_map(|(_, cases)| *cases);
        cases.for_each(|case| println!("{:14} {}", "", case.name));
    }
}

/// Prints the suites of many minutes.
pub fn list_soaks() {
    for suite in SOAKS {
        println!("{:14} {}", suite.name, suite.summary);
    }
}

/// Runs the suites of many minutes that are named, or all, each for `seconds` or as long as it needs; true if all passed.
pub fn soak(names: &[String], loader: Option<&Path>, seconds: Option<u64>) -> anyhow::Result<bool> {
    let chosen = choose(SOAKS, names)?;
    let loader = loader.map_or_else(artifact::build, |path| Ok(path.to_owned()))?;
    let total = run_suites(&loader, &chosen, seconds)?;
    println!("rtld: {} passed, {} failed", total.passed, total.failed);
    Ok(total.failed == 0 && total.passed > 0)
}

/// Runs what is asked for (everything if nothing is named); true if all passed.
pub fn run(names: &[String], loader: Option<&Path>) -> anyhow::Result<bool> {
    let chosen = choose(SUITES, names)?;
    let mut total = Counts::default();
    if names.is_empty() && loader.is_none() || names.iter().any(|name| name == UNIT) {
        total.add(unit_tests()?);
    }
    if !chosen.is_empty() {
        let loader = match loader {
            Some(path) => path.to_owned(),
            None => artifact::build()?,
        };
        total.add(run_suites(&loader, &chosen, None)?);
    }
    println!("rtld: {} passed, {} failed", total.passed, total.failed);
    Ok(total.failed == 0 && total.passed > 0)
}

fn choose(suites: &'static [Suite], names: &[String]) -> anyhow::Result<Vec<&'static Suite>> {
    if names.is_empty() {
        return Ok(suites.iter().collect());
    }
    let mut chosen = Vec::new();
    for name in names.iter().filter(|name| *name != UNIT) {
        match suites.iter().find(|suite| suite.name == name) {
            Some(suite) => chosen.push(suite),
            None => bail!("no suite {name} (see --list)"),
        }
    }
    Ok(chosen)
}

/// Runs `cargo test` and counts what its own closing lines say; a run that fails without a failed test counts as one.
fn unit_tests() -> anyhow::Result<Counts> {
    let start = Instant::now();
    let mut child =
        artifact::cargo_command().args(["test", "--quiet", "--no-fail-fast"]).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("cargo test has an output")?;
    let mut counts = Counts::default();
    for line in BufReader::new(output).lines() {
        let line = line?;
        match result_line(&line) {
            Some(more) => counts.add(more),
            None if line.is_empty() || line.starts_with("running ") => {}
            None => println!("{line}"),
        }
    }
    if !child.wait()?.success() && counts.failed == 0 {
        counts.failed = 1;
    }
    println!("     {UNIT}: {:.1} s", start.elapsed().as_secs_f64());
    println!("suite {UNIT}: {} passed, {} failed", counts.passed, counts.failed);
    Ok(counts)
}

/// "test result: ok. 3 passed; 0 failed; ..."
fn result_line(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let number =
        |word: &str| rest.split(&['.', ';'][..]).find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok());
    Some(Counts { passed: number("passed")?, failed: number("failed")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_cargo_says() {
        let line = "test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(result_line(line), Some(Counts { passed: 3, failed: 2 }));
        assert_eq!(result_line("running 3 tests"), None);
    }

    #[test]
    fn an_unknown_suite_is_an_error() {
        assert!(choose(SUITES, &["nonesuch".to_owned()]).is_err());
        assert!(choose(SOAKS, &["nonesuch".to_owned()]).is_err());
    }
}
