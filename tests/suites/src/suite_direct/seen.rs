//! What a program is handed at its start: the same program run directly, by the kernel on our loader, and by the kernel on
//! ld-linux must print the same.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::Result;

use crate::harness::{Build, Context, Report, Run, Status, Way, always};

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    for (kind, flags) in
        [("position independent", &["-fPIE", "-pie"][..]), ("position dependent", &["-fno-pie", "-no-pie"][..])]
    {
        dynamic(context, report, kind, flags)?;
    }
    for kind in ["-static", "-static-pie"] {
        fixed(context, report, kind)?;
    }
    origin(context, report)?;
    itself(context, report)
}

/// The flag that makes the fixture's probe the entry point.
const ENTRY: &str = "-Wl,-e,probe";

/// Lines that are about the loader under test and not about the program.
fn comparable(text: &str) -> String {
    let kept = text
        .lines()
        .filter(|line| !always().iter().any(|(name, _)| line.starts_with(&format!("environment <{name}="))));
    let plain = |line: &str| {
        if line.starts_with("AT_BASE file: ld") {
            "AT_BASE file: the interpreter".to_owned()
        } else {
            line.replace("-theirs/", "-ours/")
        }
    };
    kept.map(plain).collect::<Vec<_>>().join("\n") + "\n"
}

fn dynamic(context: &Context, report: &mut Report, kind: &str, flags: &[&str]) -> Result<()> {
    let base = kind.replace(' ', "-");
    let ours = context.work.join(format!("{base}-ours"));
    let theirs = context.work.join(format!("{base}-theirs"));
    let build = |output: String| Build::new("direct/seen.c").flags(flags).flag(ENTRY).output(output);
    build(format!("{base}-ours/seen")).interpreter(&context.loader).build(context)?;
    build(format!("{base}-theirs/seen")).build(context)?;
    let arguments = ["", "one", "two words", "--list", "--", "\u{e9}\n"];
    for count in 0..=arguments.len() {
        for variables in 0..4 {
            if count > 0 && count < 5 && variables > 1 {
                continue;
            }
            let run = |way| {
                let directory = if way == Way::Reference { &theirs } else { &ours };
                let run = Run::new(directory.join("seen")).way(way).env_clear().args(arguments.iter().take(count));
                (0..variables)
                    .fold(run, |run, number| run.env(format!("VARIABLE{number}"), "x".repeat(number * 3)))
                    .output(context)
            };
            let name = format!("{kind}: {count} arguments, {variables} variables");
            report.check(name, agree(&run, count));
        }
    }
    let run = |way| {
        let directory = if way == Way::Reference { &theirs } else { &ours };
        Run::new(directory.join("seen")).way(way).argument_zero("another name").env_clear().output(context)
    };
    report.check(format!("{kind}: argv[0] of one's own choice (--argv0)"), agree(&run, 0));
    // AT_EXECFN and argv[0] are the path that was given, as it was given.
    let run = |way| {
        let (directory, way) = if way == Way::Reference { (&theirs, way) } else { (&ours, Way::Direct) };
        Run::new("./seen").way(way).directory(directory).env_clear().output(context)
    };
    report.check(format!("{kind}: started by a relative path"), agree(&run, 0));
    Ok(())
}

/// The three ways print the same and exit with the number of arguments; the fixture's own checks all say 1.
fn agree(run: &dyn Fn(Way) -> Result<crate::harness::Outcome>, count: usize) -> Result<(), String> {
    let told = |error: anyhow::Error| format!("{error:#}");
    let reference = run(Way::Reference).map_err(told)?;
    let want = comparable(&reference.text());
    if reference.status != Status::Exit(i32::try_from(count + 1).unwrap_or(-1)) || !want.contains("stack 0 1 1 1\n") {
        return Err(format!("ld-linux does not do what this case is about: {}", reference.describe()));
    }
    for way in [Way::Interpreter, Way::Direct] {
        let outcome = run(way).map_err(told)?;
        let got = comparable(&outcome.text());
        if outcome.status != reference.status || got != want || !outcome.stderr.is_empty() {
            return Err(format!("{way:?}: {}\n{}", difference(&got, &want), outcome.describe()));
        }
    }
    Ok(())
}

/// The lines that differ.
fn difference(got: &str, want: &str) -> String {
    let (got, want): (Vec<_>, Vec<_>) = (got.lines().collect(), want.lines().collect());
    let missing = want.iter().filter(|line| !got.contains(line)).map(|line| format!("expected {line}"));
    let extra = got.iter().filter(|line| !want.contains(line)).map(|line| format!("got      {line}"));
    missing.chain(extra).collect::<Vec<_>>().join("\n")
}

/// A program without interpreter, which the loader maps and enters.
fn fixed(context: &Context, report: &mut Report, kind: &str) -> Result<()> {
    let program =
        Build::new("direct/seen.c").flags(&[ENTRY, kind]).output(format!("fixed{kind}/seen")).build(context)?;
    for count in 0..=3usize {
        let arguments = ["one", "", "--list"];
        let run = |way| Run::new(&program).way(way).args(arguments.iter().take(count)).output(context);
        let result = (|| -> Result<(), String> {
            let told = |error: anyhow::Error| format!("{error:#}");
            let (reference, outcome) = (run(Way::Reference).map_err(told)?, run(Way::Direct).map_err(told)?);
            let (want, got) = (comparable(&reference.text()), comparable(&outcome.text()));
            if !want.contains("AT_BASE file: none\n") {
                return Err(format!("the kernel does not do what this case is about: {}", reference.describe()));
            }
            if got == want && outcome.status == reference.status && outcome.stderr.is_empty() {
                return Ok(());
            }
            Err(format!("{}\n{}", difference(&got, &want), outcome.describe()))
        })();
        report.check(format!("{kind} program given directly, {count} arguments"), result);
    }
    Ok(())
}

/// `$ORIGIN` is the directory of the file, not of the link that named it.
fn origin(context: &Context, report: &mut Report) -> Result<()> {
    let base = context.work.join("origin");
    let library = Build::new("direct/which.c")
        .shared()
        .flags(&["-DNUMBER=5", "-Wl,-soname,libbeside.so"])
        .output("origin/real/lib/libbeside.so")
        .build(context)?;
    let program = Build::new("direct/origin.c")
        .flag("-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib")
        .with(&library)
        .output("origin/real/bin/program")
        .build(context)?;
    let built = Build::new("direct/origin.c")
        .flag("-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib")
        .interpreter(&context.loader)
        .with(&library)
        .output("origin/real/bin/program-ours")
        .build(context)?;
    fs::create_dir_all(base.join("links/deep"))?;
    for (name, target) in [("program", &program), ("program-ours", &built)] {
        symlink(target, base.join("links").join(name))?;
        symlink(format!("../{name}"), base.join("links/deep").join(name))?;
        symlink(base.join("real/bin"), base.join(format!("directory-{name}")))?;
    }
    let paths: [(&str, &str); 7] = [
        ("its own path", "real/bin/@"),
        ("a path with .. in it", "real/lib/../bin/@"),
        ("a symbolic link in another directory", "links/@"),
        ("a link to a link", "links/deep/@"),
        ("a directory that is a link", "directory-@/@"),
        ("a relative path", "./real/bin/@"),
        ("a relative link", "./links/@"),
    ];
    for (what, path) in paths {
        let named = |name: &str| {
            let path = path.replace('@', name);
            if path.starts_with("./") { Path::new(&path).to_owned() } else { base.join(path) }
        };
        for (way, name) in [(Way::Reference, "program"), (Way::Direct, "program"), (Way::Interpreter, "program-ours")] {
            let outcome = Run::new(named(name)).way(way).directory(&base).output(context)?;
            let right = outcome.status == Status::Exit(0) && outcome.text() == "5\n";
            let result = if right { Ok(()) } else { Err(format!("expected 5\ngot      {}", outcome.describe())) };
            report.check(format!("$ORIGIN of a program started by {what} ({way:?})"), result);
        }
    }
    Ok(())
}

/// The loader given itself, and a program without a path: one line each, no loop.
fn itself(context: &Context, report: &mut Report) -> Result<()> {
    let outcome = Run::new(&context.loader).way(Way::Direct).limit(10).output(context)?;
    let told = outcome.stderr.ends_with(b"\n") && outcome.error_text().lines().count() == 1;
    let right =
        outcome.status == Status::Exit(127) && told && outcome.error_text().contains("loader cannot load itself");
    report.check("the loader given itself", if right { Ok(()) } else { Err(outcome.describe()) });
    // A program name without a slash is a file of the working directory; ld-linux looks it up like a library, and fails.
    Build::new("direct/origin.c")
        .text("bare.c", "int which(void) { return 6; }\n")
        .output("bare/bare-program")
        .build(context)?;
    let outcome = Run::new("bare-program").way(Way::Direct).directory(context.work.join("bare")).output(context)?;
    report.equal(
        "a program name without a slash",
        (outcome.status, outcome.text()),
        (Status::Exit(0), "6\n".to_owned()),
    );
    Ok(())
}
