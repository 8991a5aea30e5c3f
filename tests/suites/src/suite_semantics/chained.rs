//! Runtimes that set handlers of their own and chain those of others: Python, Java, Rust, AddressSanitizer and
//! ThreadSanitizer do in each back end what they do under ld-linux in the same run.

use crate::harness::{Build, Compiler, Context, Outcome, Report, Run, Status, Way};
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run under ld-linux must show for the comparison to mean anything.
struct Want<'a> {
    status: Status,
    stdout: &'a str,
    stderr: &'a str,
}

/// Runs the checks.
pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    python(context, report);
    rust(context, report)?;
    sanitizers(context, report)?;
    java(context, report)
}

/// Compares each back end with ld-linux: status, standard output, and whether standard error has the same text in it.
fn compare(
    context: &Context,
    report: &mut Report,
    name: &str,
    program: &Path,
    want: &Want,
    configure: impl Fn(Run) -> Run,
) {
    let reference = configure(Run::new(program)).way(Way::Reference).output(context);
    let checked = reference.map_err(|error| format!("{error:#}")).and_then(|outcome| accepts(&outcome, want));
    report.check(format!("{name} (ld-linux)"), checked);
    for &back_end in context.place.back_ends() {
        let run = configure(Run::new(program)).way(Way::Interpreter).back_end(back_end);
        let checked = run.output(context).map_err(|error| format!("{error:#}"));
        report.check(format!("{name} ({back_end})"), checked.and_then(|outcome| accepts(&outcome, want)));
    }
}

fn accepts(outcome: &Outcome, want: &Want) -> Result<(), String> {
    let right = outcome.status == want.status
        && outcome.text() == want.stdout
        && if want.stderr.is_empty() { outcome.stderr.is_empty() } else { outcome.error_text().contains(want.stderr) };
    let told = || {
        format!(
            "expected {:?}\nstdout: {}\nstderr: {}\ngot      {}",
            want.status,
            want.stdout,
            want.stderr,
            outcome.describe()
        )
    };
    if right { Ok(()) } else { Err(told()) }
}

fn python(context: &Context, report: &mut Report) {
    let script = context.programs.join("sigblock/semantics/chained.py");
    let stdout = "True True\n[10, 10, 10, 10, 10, 10]\ninterrupted\nticks\nNone 0\n";
    let ends = [
        ("end", Status::Exit(0), ""),
        ("fault", Status::Signal(nix::libc::SIGSEGV), "Fatal Python error: Segmentation fault"),
        ("abort", Status::Signal(nix::libc::SIGABRT), "Fatal Python error: Aborted"),
        ("interrupt", Status::Signal(nix::libc::SIGINT), "KeyboardInterrupt"),
    ];
    for (end, status, stderr) in ends {
        let want = Want { status, stdout, stderr };
        compare(context, report, &format!("Python, {end}"), Path::new("/usr/bin/python3"), &want, |run| {
            run.args(["-B".as_ref(), script.as_os_str(), end.as_ref()])
        });
    }
}

fn rust(context: &Context, report: &mut Report) -> Result<()> {
    let program = context.work.join("chained-rust");
    let source = context.programs.join("sigblock/semantics/chained.rs");
    let compiler = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
    let mut command = Command::new(&compiler);
    let output = command.args(["--edition=2021", "-o"]).arg(&program).arg(&source).current_dir(&context.work).output();
    let output = output.with_context(|| format!("{}", compiler.display()))?;
    ensure!(output.status.success(), "rustc: {}", String::from_utf8_lossy(&output.stderr));
    let overflow = "has overflowed its stack";
    let ends = [
        ("panic", Status::Exit(0), "panic\ncaught true\n", "on purpose"),
        ("main", Status::Signal(nix::libc::SIGABRT), "main\n", overflow),
        ("thread", Status::Signal(nix::libc::SIGABRT), "thread\n", overflow),
        ("fault", Status::Signal(nix::libc::SIGSEGV), "fault\n", ""),
    ];
    for (end, status, stdout, stderr) in ends {
        let want = Want { status, stdout, stderr };
        compare(context, report, &format!("Rust, {end}"), &program, &want, |run| run.args([end]));
    }
    Ok(())
}

fn sanitizers(context: &Context, report: &mut Report) -> Result<()> {
    let stdout = "earlier 1\ninside 0 after 11 value 41\nplain 12 depth 0\n";
    for (sanitizer, compiler, fault) in [
        ("address", Compiler::Gcc, "AddressSanitizer: SEGV on unknown address"),
        ("address", Compiler::Clang, "AddressSanitizer: SEGV on unknown address"),
        ("thread", Compiler::Gcc, "ThreadSanitizer: SEGV on unknown address"),
    ] {
        let program = Build::new("sigblock/semantics/chained.c")
            .compiler(compiler)
            .flags(&["-O1", "-g", "-pthread"])
            .flag(format!("-fsanitize={sanitizer}"))
            .output(format!("chained-{sanitizer}-{}", compiler.name()))
            .build(context)?;
        let name = format!("{sanitizer} sanitizer of {}", compiler.name());
        let clean = Want { status: Status::Exit(0), stdout, stderr: "" };
        compare(context, report, &name, &program, &clean, |run| run);
        let status = Status::Exit(if sanitizer == "address" { 1 } else { 66 });
        let faulty = Want { status, stdout, stderr: fault };
        compare(context, report, &format!("{name}, fault"), &program, &faulty, |run| run.args(["fault"]));
    }
    Ok(())
}

fn java(context: &Context, report: &mut Report) -> Result<()> {
    let source = context.programs.join("sigblock/semantics/Chained.java");
    let output =
        Command::new("javac").args(["-nowarn", "-XDignore.symbol.file", "-d"]).arg(&context.work).arg(&source).output();
    let output = output.context("javac is not installed (Debian package openjdk-17-jdk-headless)")?;
    ensure!(output.status.success(), "javac: {}", String::from_utf8_lossy(&output.stderr));
    // It finds its libraries beside itself: a tree of links with a program of its own.
    let java = fs::canonicalize("/usr/bin/java")?;
    let home = java.parent().and_then(Path::parent).context("java lies in a bin directory")?;
    let tree = context.work.join("jdk");
    fs::create_dir_all(tree.join("bin"))?;
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        if entry.file_name() != "bin" {
            std::os::unix::fs::symlink(entry.path(), tree.join(entry.file_name()))?;
        }
    }
    let copy = tree.join("bin/java");
    let stdout = "sum 999000 null pointers 200\ndeep\ndeep\ndeep\nsignal true\nhook\n";
    let want = Want { status: Status::Exit(143), stdout, stderr: "" };
    // Its own library for programs that have handlers besides: it stands before the C library's sigaction.
    let chain = tree.join("lib/libjsig.so");
    ensure!(chain.exists(), "no {} (Debian package openjdk-17-jre-headless)", chain.display());
    compare(context, report, "Java with its library for chained handlers", &java, &want, |run| {
        run.args(["-Xshare:auto", "-cp", ".", "Chained"]).copy(&copy).env("LD_PRELOAD", &chain)
    });
    compare(context, report, "Java", &java, &want, |run| run.args(["-Xshare:auto", "-cp", ".", "Chained"]).copy(&copy));
    Ok(())
}
