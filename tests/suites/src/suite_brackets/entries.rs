//! Which entries into the loader are sections, where the program's code runs outside of them, and that the account at
//! exit is right.

use super::account;
use crate::harness::{Build, Context, Report, Run, Way};
use anyhow::Result;
use std::path::PathBuf;

/// Entries that must take a section at least, as `sections.c` names them.
const ENTRIES: [&str; 15] = [
    "dl_iterate_phdr",
    "dlopen",
    "dlsym",
    "dlsym next",
    "dlvsym",
    "dladdr",
    "dladdr1",
    "dlinfo",
    "_dl_find_object",
    "dlclose",
    "dlopen of nothing",
    "first call",
    "first call of an indirect function",
    "first use of a thread's block",
    "ten sections of the program's own, nested",
];

/// What takes none, and what takes exactly so many.
const EXACT: [(&str, u64); 5] = [
    ("nothing", 0),
    ("second call", 0),
    ("second use of a thread's block", 0),
    ("dl_iterate_phdr", 1),
    ("ten sections of the program's own, nested", 10),
];

/// What outside.c prints, but for the callbacks: everything of the program's runs outside. The last
/// two are in the order of our loader (docs/design.md), which is not ld-linux's.
const OUTSIDE: &str = "constructor of the program 0
main 0
callback 1
callback 2
callback again 1
function that is bound 0
resolver 0
constructor of what is opened 0
destructor of a library 0
constructor of what a callback opens 0
callback after dlopen 0
destructor of a library 0
closed 0
main again 0
function of atexit 0
destructor of a library 0
destructor of the program 0
";

/// The programs, and what they open.
pub(super) fn programs(context: &Context) -> Result<[PathBuf; 3]> {
    let bound = Build::new("sigblock/brackets/bound.c").shared().build(context)?;
    Build::new("sigblock/semantics/plugin.c").shared().build(context)?;
    Build::new("sigblock/brackets/told.c").shared().build(context)?;
    Build::new("tls/module.c").shared().flags(&["-O1", "-DNUMBER=5"]).output("libthread.so").build(context)?;
    let program = |name: &str| {
        Build::new(format!("sigblock/brackets/{name}.c"))
            .flags(&["-O1", "-pthread", "-Wl,-z,lazy", "-fno-builtin"])
            .with(&bound)
            .build(context)
    };
    Ok([program("sections")?, program("outside")?, program("account")?])
}

/// Runs the checks.
pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let [sections, outside, accounted] = programs(context)?;
    for &back_end in context.place.back_ends() {
        let run = |program: &PathBuf| Run::new(program).way(Way::Interpreter).back_end(back_end);
        let outcome = run(&sections).env("LD_DEBUG", "sigblock").output(context)?;
        report.check(format!("sections of each entry ({back_end})"), outcome.succeeded());
        let lines: Vec<Vec<String>> = outcome.text().lines().map(words).collect();
        let taken = |entry: &str| lines.iter().find(|line| line.first().is_some_and(|name| name == entry));
        for entry in ENTRIES {
            let line = taken(entry);
            let right = line.is_some_and(|line| line.get(1).is_some_and(|number| number != "0"));
            let works = line.is_some_and(|line| line.get(2).is_some_and(|word| word == "works"));
            let told = format!("expected at least one, and that it works\ngot      {line:?}");
            report.check(format!("{entry} is a section ({back_end})"), if right && works { Ok(()) } else { Err(told) });
        }
        for (entry, number) in EXACT {
            let want = vec![entry.to_owned(), number.to_string(), "works".to_owned()];
            report.equal(format!("{entry}: {number} ({back_end})"), taken(entry), Some(&want));
        }
        let outcome = run(&outside).output(context)?;
        report.check(format!("where the program's code runs ({back_end})"), outcome.succeeded());
        report.equal(format!("sections open in the program's code ({back_end})"), outcome.text().as_str(), OUTSIDE);
        accounts(context, report, &accounted, back_end)?;
    }
    Ok(())
}

/// The name, the number and the word of "NAME NUMBER WORD"; a name may have spaces.
fn words(line: &str) -> Vec<String> {
    let mut parts: Vec<String> = line.rsplitn(3, ' ').map(str::to_owned).collect();
    parts.reverse();
    parts
}

/// Sections of all threads and held signals, counted only where that was asked for.
fn accounts(context: &Context, report: &mut Report, program: &PathBuf, back_end: &str) -> Result<()> {
    let run = |arguments: [&str; 3]| {
        let run = Run::new(program).way(Way::Interpreter).back_end(back_end).args(arguments);
        run.env("LD_DEBUG", "sigblock").output(context)
    };
    let told = |arguments| -> Result<_> { account(&run(arguments)?.error_text()).map_err(anyhow::Error::msg) };
    // What the program takes besides is the same in both.
    let (none, many) = (told(["8", "0", "0"])?, told(["8", "1000", "0"])?);
    report.equal(format!("8 threads, 1000 sections each ({back_end})"), many.sections - none.sections, 8000);
    let held = told(["0", "0", "25"])?;
    // Where the mask is changed nobody is told of what it holds.
    let want = if back_end == "sigprocmask" { 0 } else { 25 };
    report.equal(format!("25 signals held ({back_end})"), held.held, want);
    report.equal(format!("the account names the back end ({back_end})"), held.back_end.as_str(), back_end);
    let plain = Run::new(program).way(Way::Interpreter).back_end(back_end).args(["8", "1000", "5"]);
    let outcome = plain.output(context)?;
    report.equal(
        format!("no sections are counted unless asked ({back_end})"),
        (outcome.text(), outcome.error_text()),
        (format!("{back_end} 0 {} 5\n", if back_end == "sigprocmask" { 0 } else { 5 }), String::new()),
    );
    Ok(())
}
