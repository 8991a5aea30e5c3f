//! `cargo xtask test`: unit tests and suites, one count over all. Owns the closing line that CI reads.

use crate::{artifact, kernel};
use anyhow::{Context as _, bail};
use rtld_suites::harness::{Counts, run_suites};
use rtld_suites::{CASES, SOAKS, SUITES, Suite};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// The name of the unit tests among the suites.
const UNIT: &str = "unit";
/// The name of the kernel patch's tests among the suites, and of its storms among the soaks.
const KERNEL: &str = "kernel";

/// Prints the suites, and the cases of those whose cases show a clause each.
pub fn list() {
    println!("{UNIT:14} unit tests of the crates that run under std");
    for suite in SUITES {
        println!("{:14} {}", suite.name, suite.summary);
        let cases = CASES.iter().filter(|(name, _)| *name == suite.name).flat_map(|(_, cases)| *cases);
        cases.for_each(|case| println!("{:14} {}", "", case.name));
    }
    println!("{KERNEL:14} the kernel patch's tests, in QEMU; builds the kernel once");
}

/// Prints the suites of many minutes.
pub fn list_soaks() {
    for suite in SOAKS {
        println!("{:14} {}", suite.name, suite.summary);
    }
    println!("{KERNEL:14} storms of 10,000,000 sections and 100,000 signals on the patched kernel, in QEMU");
}

/// Runs the suites of many minutes that are named, or all, each for `seconds` or as long as it needs; true if all passed.
pub fn soak(names: &[String], loader: Option<&Path>, seconds: Option<u64>) -> anyhow::Result<bool> {
    let chosen = choose(SOAKS, names)?;
    let mut total = Counts::default();
    if !chosen.is_empty() {
        let loader = loader.map_or_else(artifact::build, |path| Ok(path.to_owned()))?;
        total.add(run_suites(&loader, &chosen, seconds)?);
    }
    if names.is_empty() || names.iter().any(|name| name == KERNEL) {
        total.add(kernel_tests(kernel::soak));
    }
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
    if names.is_empty() && loader.is_none() || names.iter().any(|name| name == KERNEL) {
        total.add(kernel_tests(kernel::suite));
    }
    println!("rtld: {} passed, {} failed", total.passed, total.failed);
    Ok(total.failed == 0 && total.passed > 0)
}

fn choose(suites: &'static [Suite], names: &[String]) -> anyhow::Result<Vec<&'static Suite>> {
    if names.is_empty() {
        return Ok(suites.iter().collect());
    }
    let mut chosen = Vec::new();
    for name in names.iter().filter(|name| *name != UNIT && *name != KERNEL) {
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

/// Runs the kernel's tests; those that cannot run count as one that failed.
fn kernel_tests(run: fn() -> anyhow::Result<kernel::Counts>) -> Counts {
    let start = Instant::now();
    let counts = match run() {
        Ok(counts) => Counts { passed: counts.passed, failed: counts.failed },
        Err(error) => {
            println!("FAIL {KERNEL}: {error:#}");
            Counts { passed: 0, failed: 1 }
        }
    };
    println!("     {KERNEL}: {:.1} s", start.elapsed().as_secs_f64());
    println!("suite {KERNEL}: {} passed, {} failed", counts.passed, counts.failed);
    counts
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
