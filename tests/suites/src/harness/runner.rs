//! The run of the suites asked for: a fresh directory for each, an error of a suite counted as a failed check, a suite without
//! a single check counted as failed. Prints each suite's closing line.

use super::{Counts, Report, Workshop};
use crate::Suite;
use std::path::Path;
use std::time::Instant;

/// Runs `suites` against the loader at `artifact`, soaks for `seconds` if given; the sum of their counts. An error means that
/// nothing could be shown at all.
pub fn run_suites(artifact: &Path, suites: &[&Suite], seconds: Option<u64>) -> anyhow::Result<Counts> {
    run_suites_in(&Workshop::open(artifact)?.lasting(seconds), suites)
}

/// Runs `suites` in a workshop that is there; the sum of their counts.
pub fn run_suites_in(workshop: &Workshop, suites: &[&Suite]) -> anyhow::Result<Counts> {
    let mut total = Counts::default();
    for suite in suites {
        let start = Instant::now();
        let mut report = Report::new(suite.name);
        run_suite(workshop, suite, &mut report);
        report.finish();
        let counts = report.counts();
        total.add(counts);
        println!("     {}: {:.1} s", suite.name, start.elapsed().as_secs_f64());
        println!("suite {}: {} passed, {} failed", suite.name, counts.passed, counts.failed);
    }
    Ok(total)
}

/// Runs one suite into `report`, so that whatever goes wrong is counted.
pub(crate) fn run_suite(workshop: &Workshop, suite: &Suite, report: &mut Report) {
    let result = workshop.context(suite.name).and_then(|context| {
        (suite.run)(&context, report)?;
        workshop.close(&context)
    });
    if let Err(error) = result {
        report.check("the suite runs to its end", Err(format!("{error:#}")));
    }
    if report.counts() == Counts::default() {
        report.check("the suite has checks", Err("it made none".to_owned()));
    }
}
