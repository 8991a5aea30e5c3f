//! Suite `semantics`: what a section does to signals, each case in the user-mode back end, with sigprocmask and, as the source of
//! what is expected, under ld-linux, where a section is made by hand. Owns the list of programs; `cases` compares. The
//! programs say themselves which back end they ran in, which is asserted.

mod cases;

use crate::harness::{Build, Context, Report};
use anyhow::Result;
use cases::compare;

/// The programs in C, each a table of cases about one subject.
const PROGRAMS: &[&str] = &["matrix", "delivery", "actions", "masks", "waiting", "processes"];

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    for name in PROGRAMS {
        let program = Build::new(format!("sigblock/semantics/{name}.c"))
            .flags(&["-O1", "-pthread", "-Wl,-z,lazy"])
            .output(*name)
            .build(context)?;
        compare(context, report, name, &program, |run| run);
    }
    Ok(())
}
