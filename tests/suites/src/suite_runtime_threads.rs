//! Suite `runtime-threads`: loading and unloading beside everything else that threads do (issue 6, clause 2). Owns the builds; the
//! programs of `tests/programs/runtime` print what they find.

use crate::clauses::{Case, run_cases};
use crate::figures::Figures;
use crate::harness::{Bind, Build, Context, Report, Run, Way};
use crate::same::{Want, same, written};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The cases.
pub const CASES: &[Case] = &[
    Case {
        name: "6.2 8 threads open and close while others bind, throw, create threads, iterate, look up",
        run: mixed,
    },
    Case { name: "6.2 constructors create and join threads that load", run: creating },
    Case { name: "6.2 a constructor that sleeps blocks nobody's exception, lookup or loading", run: sleeping },
    Case { name: "6.2 a second dlopen waits until the object is initialised", run: waiting },
    Case { name: "6.2 callbacks open, close, ask, look up, bind and throw", run: inside },
    Case { name: "6.2 callbacks are serialised, and adds and subs are right", run: serial },
    Case { name: "6.2 a callback without unwind tables that is cancelled leaves nothing behind", run: bare },
    Case { name: "6.2 callbacks and loading do not wait for one another in a circle", run: inversion },
];

/// Nothing here takes a second but the mixed load; a loader that waits for itself waits for ever.
const LIMIT: u64 = 60;

/// Seconds of the mixed load.
const SECONDS: u64 = 2;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    run_cases(context, report, CASES);
    Ok(())
}

/// A C library of one source, with what the programs here are all built with.
fn library(context: &Context, source: &str, output: &str, flags: &[&str]) -> Result<PathBuf> {
    Build::new(format!("runtime/{source}"))
        .shared()
        .flags(&["-O1", "-Wl,-z,lazy", "-Wl,--no-as-needed", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"])
        .flags(flags)
        .output(output)
        .build(context)
}

fn program(context: &Context, source: &str, output: &str, libraries: &[&Path]) -> Result<PathBuf> {
    let build = Build::new(format!("runtime/{source}"))
        .flags(&["-O1", "-pthread", "-rdynamic", "-Wl,-z,lazy", "-Wl,--no-as-needed"])
        .flag(if source.ends_with(".cpp") { "-std=c++17" } else { "-std=gnu11" })
        .output(output);
    libraries.iter().fold(build, |build, library| build.with(library)).build(context)
}

fn limited(run: Run) -> Run {
    run.limit(LIMIT)
}

fn mixed(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    for number in 0..5 {
        let dialect = if number % 2 == 0 { "-mtls-dialect=gnu" } else { "-mtls-dialect=gnu2" };
        let output = format!("mixed/libmixed{number}.so");
        library(context, "bounded_library.cpp", &output, &["-std=c++17", dialect])?;
    }
    let giver = library(context, "giver.c", "mixed/libgiver.so", &[])?;
    Build::new("runtime/user.c")
        .shared()
        .flags(&["-O1", "-Wl,-z,lazy", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"])
        .with(giver)
        .output("mixed/libcaller.so")
        .build(context)?;
    let program = program(context, "mixed.cpp", "mixed/program", &[])?;
    let seconds = SECONDS.to_string();
    for (way, bind) in [(Way::Interpreter, Bind::Lazy), (Way::Direct, Bind::Now)] {
        let run = Run::new(&program).way(way).bind(bind).args([&seconds]).limit(LIMIT);
        let name = format!("{name}: {}", crate::same::label(way, bind));
        let Some(figures) = Figures::of(context, report, &name, &run) else { continue };
        figures.all_zero(report, &["wrong"]);
        // Every thread gets its turn; how often is the machine's business.
        for kind in ["opens", "binds", "throws", "makes", "iterates", "looks", "asks"] {
            figures.at_least(report, kind, 3);
        }
    }
    Ok(())
}

fn creating(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    library(context, "constructing.c", "creating/libopened.so", &["-DACT=1", "-pthread"])?;
    let needed = library(context, "constructing.c", "creating/libneeded.so", &["-DACT=1", "-pthread"])?;
    let text = "#include <dlfcn.h>\n#include <stdio.h>\nint value(void);
        int main(void) { printf(\"at start %d\\n\", value()); void *opened = dlopen(\"./creating/libopened.so\", RTLD_NOW);
            if (!opened) return 1;
            printf(\"opened %d\\n\", ((int (*)(void))dlsym(opened, \"value\"))()); return dlclose(opened); }";
    let program = Build::inline("creating/main.c", text)
        .flags(&["-O1", "-Wl,-rpath,$ORIGIN"])
        .with(needed)
        .output("creating/program")
        .build(context)?;
    // ld-linux 2.36 holds the lock of dlopen while constructors run: the threads wait for their creator (BZ 28357).
    written(context, report, name, &program, Want::Clean("at start 66\nopened 66"), |run| run.limit(20));
    Ok(())
}

fn constructing(context: &Context) -> Result<PathBuf> {
    let sleeping = library(context, "constructing.c", "sleeping/libsleeping.so", &["-DACT=2"])?;
    Build::new("runtime/constructing.c")
        .shared()
        .flags(&["-O1", "-DACT=3", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"])
        .with(sleeping)
        .output("sleeping/libneeding.so")
        .build(context)?;
    let giver = Build::inline("sleeping/giver.c", "int gives(void) { return 5; }\n").shared();
    let giver = giver.output("sleeping/libgiver.so").build(context)?;
    Build::inline("sleeping/other.c", "int gives(void);\nint calls(void) { return gives(); }\n")
        .shared()
        .flags(&["-O1", "-Wl,-z,lazy", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"])
        .with(giver)
        .output("sleeping/libother.so")
        .build(context)?;
    program(context, "sleeping.cpp", "sleeping/program", &[])
}

fn sleeping(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let program = constructing(context)?;
    let want = "caught 1, looked up 1, iterated 1, of libc.so.6\nmade 1, bound 5, closed 0\nended 0\nearly 0, right 1";
    // Under ld-linux dlsym and dlopen wait for the constructor.
    written(context, report, name, &program, Want::Clean(want), |run| limited(run).args(["free"]));
    Ok(())
}

fn waiting(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let program = constructing(context)?;
    same(context, report, name, &program, Want::Clean("early 0, right 4"), |run| limited(run).args(["waits"]));
    Ok(())
}

fn inside(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let giver = library(context, "giver.c", "inside/libgiver.so", &[])?;
    Build::new("runtime/user.c")
        .shared()
        .flags(&["-O1", "-Wl,-z,lazy", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"])
        .with(giver)
        .output("inside/libuser.so")
        .build(context)?;
    for output in ["inside/libone.so", "inside/libtwo.so"] {
        library(context, "giver.c", output, &[])?;
    }
    let program = program(context, "inside.cpp", "inside/program", &[])?;
    let alone = format!("{name}: alone");
    same(context, report, &alone, &program, Want::Clean("visited 1, wrong 0"), |run| limited(run).args(["alone"]));
    // Under ld-linux a callback that loads and a thread that loads wait for each other's lock.
    let together = format!("{name}: together");
    written(context, report, &together, &program, Want::Clean("wrong 0"), |run| limited(run).args(["together"]));
    Ok(())
}

fn serial(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    for output in ["serial/libone.so", "serial/libtwo.so"] {
        library(context, "giver.c", output, &[])?;
    }
    let program = program(context, "serial.c", "serial/program", &[])?;
    let want = "lost 0, together 0, backwards 0\nobjects 1, opened 1 0, closed 1 1";
    same(context, report, name, &program, Want::Clean(want), limited);
    Ok(())
}

fn bare(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let without = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let callback = library(context, "bare_callback.c", "bare/libbare.so", &without)?;
    let program = program(context, "bare.c", "bare/program", &[&callback])?;
    // Under ld-linux the thread keeps the lock around callbacks, and the next iteration waits for ever.
    let want = ["cancelled 1, iterated 1"; 3].join("\n");
    written(context, report, name, &program, Want::Clean(&want), limited);
    Ok(())
}

fn inversion(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    library(context, "giver.c", "inversion/libone.so", &[])?;
    library(context, "finaliser.c", "inversion/libfinaliser.so", &[])?;
    let program = program(context, "inversion.c", "inversion/program", &[])?;
    // Under ld-linux dlopen waits for the callback, which waits for it (openucx#3517).
    let want = "asked 1\niterated 1, waited 1";
    written(context, report, name, &program, Want::Clean(want), limited);
    Ok(())
}
