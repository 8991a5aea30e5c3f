//! The suites of sections, run in a guest of the kernel lab (`cargo xtask kernel test --suite loader`). Owns which suites, or parts
//! of suites, these are. Their programs are compiled here into a workshop that the guest gets under the same path; there the
//! same checks run on them, in the kernel's back end.

use crate::harness::{Context, Counts, Workshop, run_suites_in};
use crate::{Suite, suite_brackets, suite_handlers, suite_library, suite_semantics, suite_signals};
use anyhow::{Context as _, bail};
use std::path::Path;

/// A suite in two halves.
struct Halves {
    /// Makes everything that `suite` asks `Build` for.
    fixtures: fn(&Context) -> anyhow::Result<()>,
    suite: Suite,
}

/// In the order in which they run.
const GUEST_SUITES: &[Halves] = &[
    Halves {
        fixtures: suite_brackets::fixtures,
        suite: Suite {
            name: "brackets",
            summary: "entries are sections, without system calls",
            run: suite_brackets::run,
        },
    },
    Halves {
        fixtures: suite_semantics::fixtures,
        suite: Suite { name: "semantics", summary: "what a section does to signals", run: suite_semantics::tables },
    },
    Halves {
        fixtures: suite_signals::fixtures,
        suite: Suite { name: "signals", summary: "storms of signals", run: suite_signals::run_in_guest },
    },
    Halves {
        fixtures: suite_handlers::fixtures,
        suite: Suite {
            name: "handlers",
            summary: "handlers that bind, iterate, throw",
            run: suite_handlers::run_in_guest,
        },
    },
    Halves {
        fixtures: suite_library::fixtures,
        suite: Suite { name: "library", summary: "a thread library on libsigblock", run: suite_library::run_in_guest },
    },
];

/// Programs of the distribution that the suites start, and a library that the C library opens by itself.
pub const NEEDED: &[&str] = &[
    "/bin/sh",
    "/bin/grep",
    "/bin/true",
    "/bin/ls",
    "/usr/bin/perl",
    "/usr/bin/strace",
    "/lib/x86_64-linux-gnu/libgcc_s.so.1",
];

/// Compiles the programs of the suites named, or of all, for the loader at `artifact`.
pub fn prepare(artifact: &Path, names: &[&str]) -> anyhow::Result<Workshop> {
    let workshop = Workshop::open(artifact)?;
    for halves in chosen(names)? {
        (halves.fixtures)(&workshop.context(halves.suite.name)?).with_context(|| halves.suite.name.to_owned())?;
    }
    Ok(workshop)
}

/// In a guest: runs the suites named, or all, in the workshop that `prepare` made. The sum of their counts.
pub fn run(directory: &Path, names: &[&str]) -> anyhow::Result<Counts> {
    let suites: Vec<&Suite> = chosen(names)?.into_iter().map(|halves| &halves.suite).collect();
    run_suites_in(&Workshop::resume(directory)?, &suites)
}

fn chosen(names: &[&str]) -> anyhow::Result<Vec<&'static Halves>> {
    if let Some(unknown) = names.iter().find(|name| GUEST_SUITES.iter().all(|halves| halves.suite.name != **name)) {
        bail!("no suite {unknown} in a guest");
    }
    let wanted = |halves: &&Halves| names.is_empty() || names.contains(&halves.suite.name);
    Ok(GUEST_SUITES.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_suite_is_an_error() {
        assert!(chosen(&["nonesuch"]).is_err());
        assert_eq!(chosen(&[]).unwrap().len(), GUEST_SUITES.len());
        assert_eq!(chosen(&["signals"]).unwrap().len(), 1);
    }
}
