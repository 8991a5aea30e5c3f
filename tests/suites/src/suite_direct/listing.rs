//! `--list`: the lines of ldd, for programs and libraries, complete or not, and without running any of the file's code.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::harness::{Build, Context, Outcome, Report, Run, Status, Way, environment};

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    for file in [
        "/bin/true",
        "/bin/bash",
        "/usr/bin/gdb",
        "/usr/bin/perl",
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/lib/x86_64-linux-gnu/libstdc++.so.6",
    ] {
        report.check(
            format!("--list {file}: lines, names and paths of ld-linux"),
            as_reference(context, Path::new(file)),
        );
    }
    incomplete(context, report)?;
    fixed(context, report)?;
    quiet(context, report)
}

fn list(context: &Context, file: &Path) -> Result<Outcome, String> {
    Run::new(file).way(Way::Direct).loader_options(["--list"]).output(context).map_err(|error| format!("{error:#}"))
}

/// Whether each line has the form of ldd's: `NAME => PATH (0x16 digits)`, `PATH (0x16 digits)`, or `NAME => not found`.
fn well_formed(line: &str) -> bool {
    let Some(entry) = line.strip_prefix('\t') else {
        return false;
    };
    if entry.ends_with(" => not found") {
        return true;
    }
    let Some((name, address)) = entry.rsplit_once(" (0x") else {
        return false;
    };
    let digits = address.strip_suffix(')').unwrap_or_default();
    let paths = name.split(" => ").count();
    digits.len() == 16 && digits.chars().all(|digit| digit.is_ascii_hexdigit()) && (paths == 1 || paths == 2)
}

/// Lines without addresses, and without those of the vDSO and of the loaders: the set of loaders differs by nature.
fn names(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split(" (0x").next());
    lines
        .filter(|line| !line.contains("vdso") && !line.contains("ld-linux") && !line.ends_with("/ld"))
        .map(str::to_owned)
        .collect()
}

fn as_reference(context: &Context, file: &Path) -> Result<(), String> {
    let outcome = list(context, file)?;
    let output = Command::new(&context.reference).arg("--list").arg(file).env_clear().envs(environment()).output();
    let reference = output.map_err(|error| error.to_string())?;
    let text = outcome.text();
    let want = names(&String::from_utf8_lossy(&reference.stdout));
    if want.is_empty() {
        return Err(format!("ld-linux lists nothing: is {} installed?", file.display()));
    }
    if let Some(line) = text.lines().find(|line| !well_formed(line)) {
        return Err(format!("not a line of ldd: {line:?}"));
    }
    for part in ["vdso", &context.loader.display().to_string()] {
        if !text.contains(part) {
            return Err(format!("no line with {part}\n{}", outcome.describe()));
        }
    }
    if outcome.status == Status::Exit(0) && outcome.stderr.is_empty() && names(&text) == want {
        return Ok(());
    }
    Err(format!("expected {want:?}\ngot      {}", outcome.describe()))
}

/// Missing libraries are named, all of them, and the status is 1.
fn incomplete(context: &Context, report: &mut Report) -> Result<()> {
    let library = |name: &str| {
        Build::inline(&format!("incomplete/{name}.c"), &format!("int {name}(void) {{ return 1; }}\n"))
            .shared()
            .flag(format!("-Wl,-soname,lib{name}.so"))
            .output(format!("incomplete/d/lib{name}.so"))
            .build(context)
    };
    let (one, two, here) = (library("one")?, library("two")?, library("here")?);
    let source = "int one(void), two(void), here(void); int main(void) { return one() + two() + here(); }\n";
    let program = Build::inline("incomplete/main.c", source)
        .flag("-Wl,--enable-new-dtags,-rpath,$ORIGIN/d")
        .with(&one)
        .with(&here)
        .with(&two)
        .output("incomplete/program")
        .build(context)?;
    fs::remove_file(&one)?;
    fs::remove_file(&two)?;
    let result = list(context, &program).and_then(|outcome| {
        let want = [
            "\tlibone.so => not found".to_owned(),
            format!("\tlibhere.so => {}", here.display()),
            "\tlibtwo.so => not found".to_owned(),
            "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6".to_owned(),
        ];
        if outcome.status == Status::Exit(1) && outcome.stderr.is_empty() && names(&outcome.text()) == want {
            return Ok(());
        }
        Err(format!("expected Exit(1), {want:?}\ngot      {}", outcome.describe()))
    });
    report.check("--list of a program with two missing libraries", result);
    Ok(())
}

/// A program without needs has nothing to list. ld-linux says so of a position independent one, and dies of the other.
fn fixed(context: &Context, report: &mut Report) -> Result<()> {
    for flag in ["-static", "-static-pie"] {
        let program = Build::inline("static.c", "int main(void) { return 0; }\n")
            .flag(flag)
            .output(format!("list{flag}"))
            .build(context)?;
        let outcome = list(context, &program).map_err(anyhow::Error::msg)?;
        let got = (outcome.status, outcome.text(), outcome.stderr.len());
        report.equal(
            format!("--list of a {flag} program"),
            got,
            (Status::Exit(0), "\tstatically linked\n".to_owned(), 0),
        );
    }
    Ok(())
}

/// No code of the file runs: no constructor, no resolver of an indirect function, neither the program's nor a library's.
fn quiet(context: &Context, report: &mut Report) -> Result<()> {
    let library = Build::new("direct/noisy.c")
        .shared()
        .flags(&["-DWHO=library", "-DLIBRARY", "-Wl,-soname,libnoisy.so"])
        .output("quiet/d/libnoisy.so")
        .build(context)?;
    let program = Build::new("direct/noisy.c")
        .flags(&["-DWHO=program", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/d"])
        .with(&library)
        .output("quiet/program")
        .build(context)?;
    // A control: when it runs, it is heard.
    let text = Run::new(&program).way(Way::Reference).output(context)?.text();
    for part in
        ["resolver of library", "resolver of program", "constructor of library", "constructor of program", "main"]
    {
        report.check(
            format!("the fixture runs its {part}"),
            if text.contains(part) { Ok(()) } else { Err(text.clone()) },
        );
    }
    for (file, what) in [(&program, "program"), (&library, "library")] {
        let result = list(context, file).and_then(|outcome| {
            let silent = !outcome.text().contains(" of ") && !outcome.text().contains("main");
            if silent && outcome.status == Status::Exit(0) { Ok(()) } else { Err(outcome.describe()) }
        });
        report.check(format!("--list of a {what} runs none of its code"), result);
        let outcome = Run::new(file).way(Way::Direct).loader_options(["--verify"]).output(context)?;
        report.equal(format!("--verify of a {what} runs none of its code"), outcome.text(), "");
    }
    let outcome = Run::new("/bin/true")
        .way(Way::Direct)
        .loader_options(["--list", "--preload", &library.to_string_lossy()])
        .output(context)?;
    let right =
        outcome.status == Status::Exit(0) && !outcome.text().contains(" of ") && outcome.text().contains("libnoisy.so");
    report.check(
        "--list with --preload names the library and runs none of its code",
        if right { Ok(()) } else { Err(outcome.describe()) },
    );
    Ok(())
}
