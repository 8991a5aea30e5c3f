//! Suite `semantics`: what a section does to signals, each case in the back ends that can be had (user mode and sigprocmask; in
//! a guest of the kernel lab the kernel's) and, as the source of what is expected, under ld-linux, where a section is made by hand. Owns the list of programs;
//! `cases` compares, `chained` runs runtimes with handlers of their own. The programs say themselves which back end
//! they ran in, which is asserted.

mod cases;
mod chained;

use crate::harness::{Build, Compiler, Context, Report, Run};
use anyhow::Result;
use cases::{alone, compare};
use std::path::PathBuf;

/// The programs, each a table of cases about one subject.
const PROGRAMS: [&str; 14] = [
    "matrix.c",
    "matrix_processes.c",
    "delivery.c",
    "actions.c",
    "masks.c",
    "waiting.c",
    "processes.c",
    "fatal.c",
    "threads.c",
    "filter.c",
    "rules.c",
    "random.c",
    "leaving.cpp",
    "frames.cpp",
];

/// Values of LD_SIGBLOCK_MASK and the numbers that are held then: names, numbers, real-time ones from either end,
/// everything; what must not be held is not, whatever the list says.
const MASKS: [(&str, &str); 7] = [
    ("USR1", "{ 10 }"),
    ("USR1,13,TERM", "{ 10 13 15 }"),
    ("10,USR1", "{ 10 }"),
    ("RTMIN,RTMIN+3,RTMAX-1,RTMAX,USR1", "{ 10 34 37 63-64 }"),
    ("all", "{ 1-3 10 12-18 20-30 34-64 }"),
    ("USR1,KILL,STOP,ABRT,ILL,TRAP,BUS,FPE,SEGV,SYS,32,33,9", "{ 10 }"),
    (
        "HUP,INT,QUIT,USR1,PIPE,ALRM,CHLD,CONT,TSTP,TTIN,TTOU,URG,XCPU,XFSZ,VTALRM,PROF,WINCH,IO,POLL,PWR,STKFLT",
        "{ 1-3 10 13-14 16-18 20-30 }",
    ),
];

/// Names programs, with `+` between them, whose cases alone are run: for `cargo xtask mutants`, which looks at one case at a time.
const SUBJECT: &str = "RTLD_SUBJECT";

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    tables(context, report)?;
    if std::env::var_os(SUBJECT).is_some() { Ok(()) } else { chained::run(context, report) }
}

/// What [`tables`] runs.
pub fn fixtures(context: &Context) -> Result<()> {
    // What some of them open.
    Build::new("sigblock/semantics/plugin.c").shared().build(context)?;
    let only = std::env::var(SUBJECT).ok();
    for source in PROGRAMS.into_iter().filter(|source| is_wanted(only.as_deref(), source)) {
        build(context, source)?;
    }
    if only.is_none() {
        build(context, "hold_mask.c")?;
        leaving_by_libunwind(context)?;
    }
    Ok(())
}

/// The programs that need no more than the libraries of C and C++.
pub fn tables(context: &Context, report: &mut Report) -> Result<()> {
    Build::new("sigblock/semantics/plugin.c").shared().build(context)?;
    let only = std::env::var(SUBJECT).ok();
    for source in PROGRAMS.into_iter().filter(|source| is_wanted(only.as_deref(), source)) {
        let program = build(context, source)?;
        compare(context, report, subject(source), &program, |run| run);
    }
    if only.is_some() {
        return Ok(());
    }
    libunwind(context, report)?;
    let program = build(context, "hold_mask.c")?;
    compare(context, report, "mask", &program, |run| run);
    for (list, held) in MASKS {
        let configure = |run: Run| run.env("LD_SIGBLOCK_MASK", list).env("EXPECTED_HELD", held);
        compare(context, report, &format!("LD_SIGBLOCK_MASK={list}"), &program, configure);
    }
    Ok(())
}

fn leaving_by_libunwind(context: &Context) -> Result<PathBuf> {
    Build::new("sigblock/semantics/leaving.cpp")
        .compiler(Compiler::Clang)
        .flags(&["-O1", "-pthread", "-Wl,-z,lazy"])
        .flags(&["-stdlib=libc++", "--rtlib=compiler-rt", "--unwindlib=libunwind"])
        .output("leaving-libunwind")
        .build(context)
}

/// Exceptions out of callbacks by LLVM's unwinder. Under ld-linux they end in a fault: its own dl_iterate_phdr catches them
/// and has libgcc's go on.
fn libunwind(context: &Context, report: &mut Report) -> Result<()> {
    let program = leaving_by_libunwind(context)?;
    let names = [
        "exception",
        "exception out of two visits",
        "exception out of the inner of two visits",
        "exception and jumps that stay in the callback",
    ];
    alone(context, report, "leaving, LLVM's unwinder", &program, &names);
    Ok(())
}

fn build(context: &Context, source: &str) -> Result<PathBuf> {
    // A handler of a fault may throw only from code that is built for it.
    Build::new(format!("sigblock/semantics/{source}"))
        .flags(&["-O1", "-pthread", "-Wl,-z,lazy", "-fnon-call-exceptions"])
        .build(context)
}

/// Whether a program is one of those asked for.
fn is_wanted(only: Option<&str>, source: &str) -> bool {
    only.is_none_or(|only| only.split('+').any(|only| only == subject(source)))
}

/// The program's name without its suffix.
fn subject(source: &str) -> &str {
    source.split_once('.').map_or(source, |(name, _)| name)
}
