//! Suite `runner`: the harness tested on itself. Each way in which a run could show nothing, or a failure could go uncounted,
//! is staged here and must be noticed.

use crate::Suite;
use crate::harness::{
    Build, Context, Counts, Report, Run, Status, Way, Workshop, copy_with_interpreter, interpreter_of, run_suite,
};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    refuses_reference(context, report)?;
    notices_interpreter(context, report)?;
    notices_hanging(context, report)?;
    counts_failures(context, report)?;
    reports_status(context, report)
}

/// Given ld-linux, by its path or as a copy under another name, no run begins.
fn refuses_reference(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let copy = context.work.join("ld-elf.so.1");
    fs::copy(&context.reference, &copy)?;
    for loader in [&context.reference, Path::new("/lib64/ld-linux-x86-64.so.2"), &copy] {
        let message = Workshop::open(loader).err().map(|error| error.to_string()).unwrap_or_default();
        report.equal(
            format!("{} as the loader is refused", loader.display()),
            message.contains("nothing would be shown"),
            true,
        );
    }
    // Past the first refusal, each run notices by itself: here the loader under test is ld-linux, in name and in fact.
    let fooled = Context { loader: Path::new("/lib64/ld-linux-x86-64.so.2").to_owned(), ..context.clone() };
    for way in [Way::Direct, Way::Interpreter] {
        let message =
            Run::new("/bin/true").way(way).output(&fooled).err().map(|error| format!("{error:#}")).unwrap_or_default();
        report.equal(
            format!("ld-linux as the loader is noticed at exec ({way:?})"),
            message.contains("ld-linux is the interpreter"),
            true,
        );
    }
    Ok(())
}

/// A program that runs on another interpreter than it should is noticed.
fn notices_interpreter(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = Build::inline("plain.c", "int main(void) { return 0; }").build(context)?;
    // Short enough for PT_INTERP, as the loader under test is.
    let other = context.loader.with_file_name("other");
    fs::copy(&context.reference, &other)?;
    let fooled = Context { loader: other.clone(), ..context.clone() };
    let message = Run::new(&program).way(Way::Interpreter).output(&fooled).map(|outcome| outcome.status);
    report.equal("control: a run whose interpreter is the asserted one passes", message.ok(), Some(Status::Exit(0)));
    let named = context.work.join("named");
    copy_with_interpreter(&program, &named, &other)?;
    report.equal("the copy names the interpreter", interpreter_of(&named)?, Some(other));
    let message = Run::new(&named)
        .way(Way::Reference)
        .output(&fooled)
        .err()
        .map(|error| format!("{error:#}"))
        .unwrap_or_default();
    report.equal("our loader in a run of ld-linux is noticed", message.contains("loader under test is mapped"), true);
    let fixed = Build::inline("static.c", "int main(void) { return 0; }").flag("-static").build(context)?;
    let message = Run::new(&fixed)
        .way(Way::Interpreter)
        .output(context)
        .err()
        .map(|error| format!("{error:#}"))
        .unwrap_or_default();
    report.equal("a program without PT_INTERP cannot pass as one", message.contains("has no PT_INTERP"), true);
    Ok(())
}

/// A child that hangs, and one that leaves a process holding its output, end the run.
fn notices_hanging(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let hanging = Run::new("/bin/sleep").way(Way::Reference).args(["1000"]).limit(1).output(context)?;
    report.equal("a hanging child is noticed", hanging.status, Status::TimedOut);
    let start = Instant::now();
    let left = Run::new("/bin/sh").way(Way::Reference).args(["-c", "sleep 1000 & exit 3"]).output(context)?;
    report.equal("a child left behind does not hide the status", left.status, Status::Exit(3));
    report.equal("a child left behind is not waited for", start.elapsed() < Duration::from_secs(60), true);
    Ok(())
}

/// Failures are counted however they come about.
fn counts_failures(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let workshop = Workshop::open(&context.artifact)?;
    let count = |name, run| {
        let mut quiet = Report::quiet(name);
        run_suite(&workshop, &Suite { name, summary: "", run }, &mut quiet);
        quiet.counts()
    };
    let passing = count("passing", |_, report| {
        report.equal("one", 1, 1);
        Ok(())
    });
    report.equal("control: a passing check is counted", passing, Counts { passed: 1, failed: 0 });
    let failing = count("failing", |_, report| {
        report.equal("one", 1, 1);
        report.equal("two", 1, 2);
        report.check("three", Err("so".to_owned()));
        Ok(())
    });
    report.equal("failing checks are counted", failing, Counts { passed: 1, failed: 2 });
    let broken = count("broken", |_, report| {
        report.equal("one", 1, 1);
        anyhow::bail!("the suite cannot go on")
    });
    report.equal("an error of a suite is a failure", broken, Counts { passed: 1, failed: 1 });
    let empty = count("empty", |_, _| Ok(()));
    report.equal("a suite without checks is a failure", empty, Counts { passed: 0, failed: 1 });
    let missing = Build::inline("bad.c", "int main(void) { return nonesuch; }").build(context);
    report.equal("a fixture that does not compile is an error", missing.is_err(), true);
    Ok(())
}

/// Status, outputs, input and environment arrive as they are.
fn reports_status(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let shell = |script: &str| Run::new("/bin/sh").way(Way::Reference).args(["-c", script]);
    let outcome = shell("echo out; echo err >&2; exit 9").output(context)?;
    report.equal("exit status", outcome.status, Status::Exit(9));
    report.equal("standard output", outcome.text(), "out\n");
    report.equal("standard error", outcome.error_text(), "err\n");
    report.equal("signal", shell("kill -SEGV $$").output(context)?.status, Status::Signal(11));
    report.equal("standard input", shell("cat").stdin("given").output(context)?.text(), "given");
    let large = shell("head -c 3000000 /dev/zero").output(context)?;
    report.equal("output larger than a pipe", large.stdout.len(), 3_000_000);
    let shown =
        shell("echo \"$LD_LIBRARY_PATH|$GLIBC_TUNABLES|$GIVEN|$LD_FALLBACK\"").env("GIVEN", "x").output(context)?;
    report.equal("environment under ld-linux", shown.text(), "||x|\n");
    let differing = shell("echo a").output(context)?.same_as(&shell("echo b").output(context)?);
    report.equal("two different outputs are not the same", differing.is_err(), true);
    Ok(())
}
