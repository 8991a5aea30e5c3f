//! Suite `instructions`: how many instructions the start of a synthetic set takes on our loader, against a recorded figure. Owns the
//! bound. A figure that is raised is a choice, and docs/performance.md says why.

use crate::harness::{Build, Context, Report, instructions};
use crate::synthetic::{self, Shape};
use anyhow::Context as _;
use std::fs;

/// The set: small enough for every run of the tests, and of relocations for the most part.
const SHAPE: Shape = Shape { libraries: 100, symbols: 50 };
/// The recorded figure, from the workspace's directory.
const RECORD: &str = "tests/recorded/instructions.txt";
/// Per cent that a compiler or a C library may change.
const MARGIN: u64 = 3;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let ending = Build::new("bench/startexit.c").shared();
    let ending = ending.flags(&["-O2", "-nostdlib", "-Wl,-z,initfirst"]).build(context)?;
    // Without a C library: what is counted is ours, not the resolvers of the distribution's.
    let program = synthetic::build(&context.work, SHAPE)?.bare;
    let count = |loader| instructions(context, loader, &ending, &program, &[]);
    let (ours, theirs) = (count(&context.loader)?, count(&context.reference)?);
    let text = fs::read_to_string(context.root.join(RECORD)).context(RECORD)?;
    let recorded: u64 = text.trim().parse().context(RECORD)?;
    report.note(format!("{}: {ours} instructions, recorded {recorded} (ld-linux {theirs})", SHAPE.name()));
    report.check("ld-linux is counted", if theirs > 1_000_000 { Ok(()) } else { Err(format!("got {theirs}")) });
    let limit = recorded + recorded * MARGIN / 100;
    let result = if ours <= limit {
        Ok(())
    } else {
        Err(format!(
            "expected at most {limit}\ngot      {ours}\nif that is meant: write it into {RECORD}, and why into docs/performance.md"
        ))
    };
    report.check(format!("{}: at most {MARGIN} % over the recorded figure", SHAPE.name()), result);
    if ours < recorded - recorded * MARGIN / 100 {
        report.note(format!("a gain: write {ours} into {RECORD}, so that it is kept"));
    }
    Ok(())
}
