//! The test suites of the loader: each one runs real programs on it and ends in a count. Owns the list of suites; how they
//! compile, run and report lies in `harness`. A suite may not start a program other than through `harness::Run`, which asserts
//! that the loader under test is the interpreter.

mod elf_edit;
pub mod harness;
mod namespace;
mod same;
mod suite_search;
mod suite_cxx;
mod suite_lazy;
mod suite_ifunc;

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
pub const SUITES: &[Suite] = &[
    Suite { name: "search", summary: "where needed libraries are found, in glibc's order", run: suite_search::run },
    Suite { name: "cxx", summary: "exceptions, thread-local and static objects of C++ across libraries", run: suite_cxx::run },
    Suite { name: "lazy", summary: "when functions are bound, and what binding them keeps", run: suite_lazy::run },
    Suite { name: "ifunc", summary: "indirect functions: after everything else, in every copy", run: suite_ifunc::run },
];
