//! Suite `plugin`: a thousand rounds of opening, using and closing a C++ plug-in with thread-local data leave nothing behind:
//! mappings, descriptors, objects, TLS modules as after round 100, resident memory within one per cent. Owns that comparison.

use crate::harness::{Build, Compiler, Context, Report, Run, Status, WAYS};
use crate::same::label;
use anyhow::Result;
use std::path::Path;

/// Rounds of one run.
const ROUNDS: &str = "1000";

/// What the program counts at one moment.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Counts {
    mappings: u64,
    descriptors: u64,
    objects: u64,
    module: u64,
}

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    for compiler in [Compiler::Gcc, Compiler::Clang] {
        let place = compiler.name();
        let library = Build::new("plugin/plugin.cpp")
            .shared()
            .compiler(compiler)
            .flags(&["-O1", "-std=c++17", "-Wl,-z,lazy"])
            .output(format!("{place}/libplugin.so"))
            .build(context)?;
        // The program needs libstdc++ itself: in the scope of the plug-in alone libstdc++ would be bound to the plug-in and keep it.
        let program = Build::new("plugin/rounds.cpp")
            .compiler(compiler)
            .flags(&["-O1", "-std=c++17", "-pthread", "-Wl,--no-as-needed"])
            .output(format!("{place}/rounds"))
            .build(context)?;
        for (way, bind) in WAYS {
            let run = Run::new(&program).way(way).bind(bind).args([library.as_os_str(), ROUNDS.as_ref()]).limit(120);
            let name = format!("{} ({})", compiler.name(), label(way, bind));
            one(context, report, &name, &run, &library);
        }
    }
    Ok(())
}

/// One run: three checks.
fn one(context: &Context, report: &mut Report, name: &str, run: &Run, library: &Path) {
    let outcome = match run.output(context) {
        Ok(outcome) => outcome,
        Err(error) => return report.check(format!("{name}: runs"), Err(format!("{error:#}"))),
    };
    let text = outcome.text();
    let lines: Vec<&str> = text.lines().collect();
    let right = outcome.status == Status::Exit(0) && lines.last() == Some(&"wrong 0") && outcome.stderr.is_empty();
    report.check(
        format!("{name}: {} is right in every round", library.display()),
        if right { Ok(()) } else { Err(format!("expected Exit(0), wrong 0\ngot      {}", outcome.describe())) },
    );
    let (Some(early), Some(late)) =
        (lines.get(1).and_then(|line| parse(line)), lines.get(2).and_then(|line| parse(line)))
    else {
        return report.check(format!("{name}: counts"), Err(format!("no counts\n{}", outcome.describe())));
    };
    report.note(format!("{name}: {:?}, resident {} then {} KiB", late.0, early.1, late.1));
    report.equal(format!("{name}: mappings, descriptors, objects, TLS module as after round 100"), late.0, early.0);
    let within = late.1.abs_diff(early.1) * 100 <= early.1;
    report.check(
        format!("{name}: resident memory within 1 % of that after round 100"),
        if within { Ok(()) } else { Err(format!("expected {} KiB within 1 %\ngot      {} KiB", early.1, late.1)) },
    );
}

/// Mappings, descriptors, objects, TLS module, resident KiB.
fn parse(line: &str) -> Option<(Counts, u64)> {
    let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [mappings, descriptors, objects, module, resident] = numbers.try_into().ok()?;
    Some((Counts { mappings, descriptors, objects, module }, resident))
}
