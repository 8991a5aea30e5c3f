//! The test suites of the loader: each one runs real programs on it and ends in a count. Owns the list of suites; how they
//! compile, run and report lies in `harness`. A suite may not start a program other than through `harness::Run`, which asserts
//! that the loader under test is the interpreter.

pub mod harness;

use harness::{Context, Report};

/// One named suite of `cargo xtask test`.
pub struct Suite {
    /// The name on the command line and in the closing line.
    pub name: &'static str,
    /// What it shows, in one line.
    pub summary: &'static str,
    /// Runs every check; an error ends the suite and counts as one failed check.
    pub run: fn(&Context, &mut Report) -> anyhow::Result<()>,
}

/// Every suite, in the order in which they run: one line each.
pub const SUITES: &[Suite] = &[];
