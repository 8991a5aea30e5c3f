//! Suite `runtime-fork`: forks at any moment (issue 6, clause 3): every way to copy a process, while other threads are inside the
//! loader, and what the child can do then.
//! Owns the builds; the programs of `tests/programs/runtime` print how many children were right.

use crate::clauses::{Case, run_cases};
use crate::harness::{Build, Context, Report, Run};
use crate::same::{Want, written};
use anyhow::Result;
use std::fs;
use std::path::PathBuf;

/// The cases.
pub const CASES: &[Case] = &[
    Case { name: "6.3 every fork while other threads open and close", run: |c, r, n| moment(c, r, n, "open") },
    Case { name: "6.3 every fork while other threads bind lazily", run: |c, r, n| moment(c, r, n, "bind") },
    Case { name: "6.3 every fork while other threads are in callbacks", run: |c, r, n| moment(c, r, n, "callback") },
    Case { name: "6.3 every fork while other threads use the loader's heap", run: |c, r, n| moment(c, r, n, "heap") },
    Case { name: "6.3 every fork while threads come and go", run: |c, r, n| moment(c, r, n, "threads") },
    Case { name: "6.3 every fork in a handler of a thread that opens", run: |c, r, n| moment(c, r, n, "handler") },
    Case { name: "6.3 every fork while other threads do all of it", run: all },
    Case { name: "6.3 vfork and what shares memory is no fork; posix_spawn, system, popen", run: shared },
    Case { name: "6.3 daemon(3) while other threads open and close", run: daemons },
    Case { name: "6.3 the child completes what another thread was bringing up", run: resolving },
    Case { name: "6.3 the child throws and starts threads", run: throws },
    Case { name: "6.3 no handler of pthread_atfork", run: no_handler },
];

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    run_cases(context, report, CASES);
    Ok(())
}

/// Every way to make a child that has memory of its own: the C library's, the kernel's, one inside the C library.
const WAYS: [&str; 5] = ["fork", "_Fork", "clone", "syscall", "forkpty"];
const BESIDE: [&str; 2] = ["-Wl,-z,lazy", "-Wl,-rpath,$ORIGIN"];

/// The plug-ins, and a program of `tests/programs/runtime` beside them.
fn build(context: &Context, source: &str) -> Result<PathBuf> {
    let provider = Build::new("runtime/provider.c").shared().flag("-O1").output("libprovider.so").build(context)?;
    let plugin = |source: &str, name: &str| {
        let soname = format!("-Wl,-soname,{name}");
        let build = Build::new(source).shared().flags(&["-O1"]).flags(&BESIDE).flag(soname).with(&provider);
        build.output(name).build(context)
    };
    plugin("runtime/child_plugin.c", "libchild.so")?;
    for number in 1..=4 {
        plugin("runtime/busy_plugin.c", &format!("libbusy{number}.so"))?;
    }
    let flags = ["-O1", "-pthread", "-fno-builtin"];
    Build::new(format!("runtime/{source}.c")).flags(&flags).flags(&BESIDE).with(&provider).output(source).build(context)
}

/// Each way at one moment. Under ld-linux children find its lock, or its records, as another thread left them.
fn moment(context: &Context, report: &mut Report, name: &str, moment: &str) -> Result<()> {
    let program = build(context, "forks")?;
    for way in WAYS {
        let run = Run::new(&program).args([way, moment, "50"]);
        let outcome = run.output(context)?;
        let want = format!("{way} {moment} 50 of 50");
        report.check(format!("{name} ({way})"), Want::Clean(&want).accepts(&outcome));
    }
    Ok(())
}

fn all(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let program = build(context, "forks")?;
    written(context, report, name, &program, Want::Clean("clone all 50 of 50"), |run| run.args(["clone", "all", "50"]));
    moment(context, report, name, "all")
}

fn shared(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let program = build(context, "vforks")?;
    let want = "vfork 30, clone with the memory 30, posix_spawn 30, system 6, popen 6; others went on 1";
    written(context, report, name, &program, Want::Clean(want), |run| run);
    Ok(())
}

/// Under ld-linux a daemon may wait for the lock of a thread that is not there.
fn daemons(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let program = build(context, "daemons")?;
    written(context, report, name, &program, Want::Clean("daemons 40 of 40"), |run| run.args(["40"]));
    Ok(())
}

/// Under ld-linux the child waits for the lock of the thread that is not there.
fn resolving(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let library = Build::new("runtime/resolving_library.c").shared().flags(&["-O1", "-Wl,-z,relro,-z,now"]);
    library.output("libresolving.so").build(context)?;
    let program =
        Build::new("runtime/resolving.c").flags(&["-O1", "-pthread", "-fno-builtin", "-rdynamic"]).flags(&BESIDE);
    let provider = Build::new("runtime/provider.c").shared().flag("-O1").output("libprovider.so").build(context)?;
    let program = program.with(&provider).output("resolving").build(context)?;
    let want = "fork right\n_Fork right\nclone right\nsyscall right\nthe parent right";
    written(context, report, name, &program, Want::Clean(want), |run| run);
    Ok(())
}

fn throws(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let library =
        Build::new("threads/thrower_library.cpp").shared().flag("-O1").output("libthrower.so").build(context)?;
    let program = Build::new("fork/throwing.cpp").flags(&["-O1", "-pthread", "-Wl,-z,lazy"]).with(library);
    let program = program.output("throwing").build(context)?;
    written(context, report, name, &program, Want::Clean("single 43\nthreaded 20"), |run| run);
    Ok(())
}

/// The loader names no function that registers one, so it can find none.
fn no_handler(context: &Context, report: &mut Report, name: &str) -> Result<()> {
    let image = fs::read(&context.artifact)?;
    let names = |text: &[u8]| image.windows(text.len()).any(|bytes| bytes == text);
    let found = if names(b"mallopt") { None } else { Some("mallopt is not found, so this check sees nothing") };
    let found = found.or(names(b"register_atfork").then_some("the loader names __register_atfork"));
    report.check(name.to_owned(), found.map_or(Ok(()), |found| Err(found.to_owned())));
    Ok(())
}
