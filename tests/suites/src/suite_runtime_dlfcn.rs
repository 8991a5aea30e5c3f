//! Suite `runtime-dlfcn`: the rest of <dlfcn.h> (issue 6, clause 4): dlinfo's requests, FreeBSD's functions, glibc's exceptions,
//! callers that left their frame, dlclose at unusual times.
//! Owns the builds; the programs of `tests/programs/runtime` print what they are answered.

use crate::clauses::{Case, run_cases};
use crate::harness::{Build, Context, Report};
use crate::same::{Want, same, written};
use anyhow::Result;
use std::fs;
use std::path::PathBuf;

/// The cases.
pub const CASES: &[Case] = &[
    Case { name: "6.4 every request of dlinfo", run: requests },
    Case { name: "6.4 fdlopen and dlfunc of FreeBSD", run: freebsd },
    Case { name: "6.4 _dl_catch_exception and its kin in eight threads", run: caught },
    Case { name: "6.4 RTLD_DEFAULT, RTLD_NEXT and dlopen from tail calls in constructors", run: tails },
    Case { name: "6.4 dlclose in a handler of pthread_atfork", run: |c, r, n| ending(c, r, n, "fork") },
    Case { name: "6.4 dlclose and dlopen at exit while threads load", run: |c, r, n| ending(c, r, n, "exit") },
];

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    run_cases(context, report, CASES);
    Ok(())
}

const BESIDE: [&str; 2] = ["-Wl,-z,lazy", "-Wl,-rpath,$ORIGIN"];

fn plugin(context: &Context, source: &str, name: &str) -> Result<PathBuf> {
    let provider = Build::new("runtime/provider.c").shared().flag("-O1").output("libprovider.so").build(context)?;
    let build = Build::new(format!("runtime/{source}.c")).shared().flag("-O1").flags(&BESIDE).with(&provider);
    build.output(name).build(context)
}

fn program(context: &Context, source: &str) -> Result<PathBuf> {
    let flags = ["-O1", "-pthread", "-rdynamic", "-D_GNU_SOURCE"];
    Build::new(format!("runtime/{source}.c")).flags(&flags).output(source).build(context)
}

fn requests(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let library = plugin(context, "child_plugin", "libchild.so")?;
    let program = program(context, "requests")?;
    let directory = context.work.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let about = |what: &str, named: &str, module: u32, data: u32| {
        format!(
            "{what}
RTLD_DI_LMID: 0
  base 1
RTLD_DI_LINKMAP: 0
  the handle 1, named {named}
RTLD_DI_CONFIGADDR: unsupported dlinfo request
RTLD_DI_SERINFOSIZE: 0
  some 1
RTLD_DI_SERINFO: 0
  first is absolute 1
RTLD_DI_ORIGIN: 0
  {directory}
RTLD_DI_PROFILENAME: unsupported dlinfo request
RTLD_DI_PROFILEOUT: unsupported dlinfo request
RTLD_DI_TLS_MODID: 0
RTLD_DI_TLS_DATA: 0
  module {module}, data {data}
RTLD_DI_PHDR: headers 1
0: unsupported dlinfo request
12: unsupported dlinfo request
-1: unsupported dlinfo request
"
        )
    };
    let want = about("the program", "", 0, 0)
        + &about("a library", "libchild.so", 1, 0)
        + &about("a library in use", "libchild.so", 1, 1);
    // ld-linux 2.36 does not know RTLD_DI_PHDR's origin of the program started by hand, and ends in a signal.
    written(context, report, name, &program, Want::Clean(want.trim()), |run| run.args([&library]));
    Ok(())
}

fn freebsd(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let library = plugin(context, "child_plugin", "libchild.so")?;
    let copy = context.work.join("libgone.so");
    let program = program(context, "freebsd")?;
    let want = "the program 1
by its path 1, the same as by name 1
the descriptor is open 1
dlfunc 50 5
not there 1: 1
next 1
removed: another object 1, 50
closed: Bad file descriptor
no library: file too short
no mode: 1";
    // No C library of Linux has them. The program removes the copy that it opens, so each run gets one.
    written(context, report, name, &program, Want::Clean(want), |run| {
        // A copy that fails is told by the run, which does not find it.
        let _ = fs::copy(&library, &copy);
        run.args([&library, &copy])
    });
    Ok(())
}

fn caught(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let program = program(context, "caught")?;
    same(context, report, name, &program, Want::Clean("wrong 0"), |run| run);
    Ok(())
}

fn tails(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    plugin(context, "child_plugin", "beside/libbeside.so")?;
    let tail = |number: u32| {
        let build = Build::new("runtime/tail.c").shared().flag("-O1").flag(format!("-DNUMBER={number}"));
        build.output(format!("libtail{number}.so"))
    };
    let second = tail(2).build(context)?;
    let path = "-Wl,-rpath,$ORIGIN:$ORIGIN/beside";
    let first = tail(1).flags(&["-DASKS", path, "-Wl,--no-as-needed"]).with(second).build(context)?;
    let program = program(context, "tails")?;
    let want = "found in 1\nfound in 2\nopened: (none)\nbeside 1\nfound in 2\nclosed: (none)";
    // Under ld-linux 2.36 the first call ends in a signal: its caller is in no object that it opened.
    written(context, report, name, &program, Want::Clean(want), |run| run.args([&first]));
    Ok(())
}

fn ending(context: &Context, report: &mut Report, name: &str, moment: &str) -> Result<()> {
    plugin(context, "child_plugin", "libchild.so")?;
    plugin(context, "child_plugin", "libsecond.so")?;
    for number in 1..=4 {
        plugin(context, "busy_plugin", &format!("libbusy{number}.so"))?;
    }
    let program = program(context, "ending")?;
    let want = match moment {
        "fork" => "child 10, parent 1",
        _ => "at exit: loaded 0, a library 50, closed 1",
    };
    same(context, report, name, &program, Want::Clean(want), |run| run.args([moment]));
    Ok(())
}
