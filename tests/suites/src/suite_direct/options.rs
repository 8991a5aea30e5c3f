//! The loader's options: what they do, what they say when misused, and that none of them enters the program's environment.

use std::process::Command;

use anyhow::Result;

use crate::harness::{Build, Context, Report, Run, Status, Way, always, environment};

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    misuse(context, report)?;
    end_of_options(context, report)?;
    effects(context, report)?;
    help(context, report)?;
    verify(context, report)
}

/// A run of the loader without a program: the harness starts `LOADER OPTIONS... LAST`.
fn bare(context: &Context, arguments: &[&str]) -> Result<std::process::Output> {
    Ok(Command::new(&context.loader).args(arguments).env_clear().envs(environment()).envs(always()).output()?)
}

/// The text with the name of the loader taken out.
fn anonymous(bytes: &[u8], name: &std::path::Path) -> String {
    String::from_utf8_lossy(bytes).replace(&*name.to_string_lossy(), "LOADER")
}

fn misuse(context: &Context, report: &mut Report) -> Result<()> {
    let cases: &[(&[&str], &str)] = &[
        (&[], "missing program name"),
        (&["--bogus"], "unrecognized option '--bogus'"),
        (&["--bogus", "/bin/true"], "unrecognized option '--bogus'"),
        (&["--list", "--bogus", "/bin/true"], "unrecognized option '--bogus'"),
        (&["--list"], "missing program name"),
        (&["--verify"], "missing program name"),
        (&["--library-path", "/x"], "missing program name"),
        (&["--argv0", "x"], "missing program name"),
        (&["--preload", "x"], "missing program name"),
        (&["--inhibit-cache"], "missing program name"),
    ];
    for (arguments, words) in cases {
        let reference = Command::new(&context.reference).args(*arguments).env_clear().envs(environment()).output()?;
        let want = (
            reference.status.code(),
            anonymous(&reference.stdout, &context.reference),
            anonymous(&reference.stderr, &context.reference),
        );
        let output = bare(context, arguments)?;
        let got = (
            output.status.code(),
            anonymous(&output.stdout, &context.loader),
            anonymous(&output.stderr, &context.loader),
        );
        let result = if !want.2.contains(words) {
            Err(format!("ld-linux does not do what this case is about: {want:?}"))
        } else if got == want {
            Ok(())
        } else {
            Err(format!("expected {want:?}\ngot      {got:?}"))
        };
        report.check(format!("LOADER {}", arguments.join(" ")), result);
    }
    // ld-linux calls the first three unknown, and takes the last for a program.
    let cases = [
        ("--library-path", "option '--library-path' needs a value"),
        ("--argv0", "option '--argv0' needs a value"),
        ("--preload", "option '--preload' needs a value"),
        ("-x", "unrecognized option '-x'"),
    ];
    for (argument, words) in cases {
        let output = bare(context, &[argument])?;
        let got = (output.status.code(), output.stdout.len(), anonymous(&output.stderr, &context.loader));
        let want = format!("LOADER: {words}\nTry 'LOADER --help' for more information.\n");
        report.equal(format!("LOADER {argument}"), got, (Some(1), 0, want));
    }
    Ok(())
}

/// `--` ends the options, which ld-linux has not.
fn end_of_options(context: &Context, report: &mut Report) -> Result<()> {
    let run = |options: &[&str]| {
        Run::new("/usr/bin/printf")
            .way(Way::Direct)
            .loader_options(options)
            .args(["%s.", "--", "--list"])
            .output(context)
    };
    for options in [&["--"][..], &["--inhibit-cache", "--"][..], &[][..]] {
        let outcome = run(options)?;
        report.equal(
            format!("options {options:?}, then the program's own options"),
            (outcome.status, outcome.text()),
            (Status::Exit(0), "--.--list.".to_owned()),
        );
    }
    let output = bare(context, &["--", "--bogus"])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    report.equal(
        "LOADER -- --bogus is a program called --bogus",
        (output.status.code(), said.starts_with("--bogus: error while loading shared libraries: --bogus: cannot open")),
        (Some(127), true),
    );
    Ok(())
}

/// Each option's effect on the program, and none on the environment of its children.
fn effects(context: &Context, report: &mut Report) -> Result<()> {
    let first = Build::new("direct/which.c")
        .shared()
        .flags(&["-DNUMBER=1", "-Wl,-soname,libw.so"])
        .output("effects/one/libw.so")
        .build(context)?;
    let second = Build::new("direct/which.c")
        .shared()
        .flags(&["-DNUMBER=2", "-Wl,-soname,libw.so"])
        .output("effects/two/libw.so")
        .build(context)?;
    let program = Build::new("direct/origin.c").with(&first).output("effects/program").build(context)?;
    let at = context.work.join("effects");
    let (one, two) = (at.join("one").display().to_string(), at.join("two").display().to_string());
    let both = format!("{two}:{one}");
    let (preload, preloads) = (second.display().to_string(), format!("{0} {1}", second.display(), first.display()));
    // What is shown, the options, the variables, what the program prints.
    type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)], &'a str);
    let cases: &[Case] = &[
        ("--library-path", &["--library-path", &one], &[], "1\n"),
        ("--library-path with two directories", &["--library-path", &both], &[], "2\n"),
        (
            "--library-path comes in place of LD_LIBRARY_PATH",
            &["--library-path", &one],
            &[("LD_LIBRARY_PATH", &two)],
            "1\n",
        ),
        ("--preload", &["--library-path", &one, "--preload", &preload], &[], "2\n"),
        ("--preload with two names", &["--library-path", &one, "--preload", &preloads], &[], "2\n"),
        (
            "LD_PRELOAD comes before --preload",
            &["--library-path", &one, "--preload", &preload],
            &[("LD_PRELOAD", &format!("{one}/libw.so"))],
            "1\n",
        ),
        (
            "options in another order",
            &["--inhibit-cache", "--preload", &preload, "--library-path", &one, "--argv0", "x"],
            &[],
            "2\n",
        ),
    ];
    for (name, options, variables, want) in cases {
        let run = Run::new(&program).way(Way::Direct).loader_options(*options);
        let run = variables.iter().fold(run, |run, (variable, value)| run.env(variable, value));
        let outcome = run.output(context)?;
        let mut command = Command::new(&context.reference);
        command.args(*options).arg(&program).env_clear().envs(environment()).envs(variables.iter().copied());
        let reference = command.output()?;
        let result = if reference.stdout != want.as_bytes() {
            Err(format!("ld-linux does not do what this case is about: {reference:?}"))
        } else if outcome.status == Status::Exit(0)
            && outcome.stdout == reference.stdout
            && outcome.stderr == reference.stderr
        {
            Ok(())
        } else {
            Err(format!("expected {want:?}\ngot      {}", outcome.describe()))
        };
        report.check(*name, result);
    }
    let options = ["--library-path", &one, "--preload", &preload, "--inhibit-cache", "--argv0", "x"];
    let outcome = Run::new("/usr/bin/env")
        .way(Way::Direct)
        .loader_options(options)
        .env_clear()
        .env("KEPT", "1")
        .output(context)?;
    let mut lines: Vec<String> = outcome.text().lines().map(str::to_owned).collect();
    lines.sort();
    let kept = always().into_iter().map(|(name, value)| format!("{name}={value}"));
    let expected: Vec<String> = std::iter::once("KEPT=1".to_owned()).chain(kept).collect();
    report.equal("no option enters the environment", lines, expected);
    Ok(())
}

/// `--help` and `--version`.
fn help(context: &Context, report: &mut Report) -> Result<()> {
    let output = Command::new(&context.loader)
        .arg("--help")
        .env_clear()
        .env("LD_LIBRARY_PATH", "/first:/second")
        .envs(always())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    report.equal("--help: exit status and standard error", (output.status.code(), output.stderr.len()), (Some(0), 0));
    let lines: Vec<&str> = text.lines().collect();
    report.check("--help: the options fit a screen of 24 lines, every line one of 80 columns", {
        let wide = lines.iter().find(|line| line.chars().count() > 80);
        let options = lines.iter().take_while(|line| !line.contains("(LD_LIBRARY_PATH)")).count();
        match wide {
            Some(line) => Err(format!("a line of {} columns: {line}", line.chars().count())),
            None if !(8..=24).contains(&options) => Err(format!("{options} lines\n{text}")),
            None => Ok(()),
        }
    });
    report.check(
        "--help begins with the usage",
        if text.starts_with(&format!("Usage: {} ", context.loader.display())) { Ok(()) } else { Err(text.clone()) },
    );
    for option in
        ["--list", "--verify", "--preload", "--library-path", "--argv0", "--inhibit-cache", "--help", "--version"]
    {
        report.check(format!("--help names {option}"), if text.contains(option) { Ok(()) } else { Err(text.clone()) });
    }
    // The live search path stands last: what LD_LIBRARY_PATH says, the cache, the default directories.
    let tail = lines.iter().rev().take(8).copied().collect::<Vec<_>>().join(" ");
    for part in ["/first", "/second", "LD_LIBRARY_PATH", "/etc/ld.so.cache", "/lib/x86_64-linux-gnu", "/usr/lib"] {
        report.check(
            format!("--help ends with the live search path: {part}"),
            if tail.contains(part) { Ok(()) } else { Err(text.clone()) },
        );
    }
    let output = bare(context, &["--version"])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = text.lines().next().unwrap_or_default().to_owned();
    report.equal(
        "--version: exit status and standard error",
        (output.status.code(), output.stderr.len()),
        (Some(0), 0),
    );
    report.equal("--version begins with name and version", first, format!("ld-elf.so.1 {}", env!("CARGO_PKG_VERSION")));
    Ok(())
}

/// `--verify`: 0, 1 or 2 as ld-linux; nothing is printed.
fn verify(context: &Context, report: &mut Report) -> Result<()> {
    let build = |flags: &[&str], name: &str| {
        Build::inline(&format!("{name}.c"), "int main(void) { return 0; }\n")
            .flags(flags)
            .output(format!("verify/{name}"))
            .build(context)
    };
    let dynamic = build(&["-fPIE", "-pie"], "pie")?;
    let fixed = build(&["-fno-pie", "-no-pie"], "non-pie")?;
    let static_pie = build(&["-static-pie"], "static-pie")?;
    let static_program = build(&["-static"], "static")?;
    let library = Build::new("direct/which.c").shared().flag("-DNUMBER=1").output("verify/libw.so").build(context)?;
    let missing = Build::new("direct/origin.c").with(&library).output("verify/missing").build(context)?;
    let class = Build::new("direct/which.c")
        .shared()
        .flags(&["-m32", "-nostdlib", "-DNUMBER=1"])
        .output("verify/lib32.so")
        .build(context)?;
    let library_path = library.clone();
    std::fs::write(
        context.work.join("verify/text"),
        "not an ELF file, but longer than the header of one would be: 64 bytes\n",
    )?;
    std::fs::write(context.work.join("verify/empty"), "")?;
    let path = |name: &str| context.work.join("verify").join(name);
    let cases = [
        ("a position independent program", dynamic, 0),
        ("a position dependent program", fixed, 0),
        ("a program whose library is missing", missing, 0),
        ("a static position independent program", static_pie, 2),
        ("a static program", static_program, 1),
        ("a library", library_path, 2),
        ("libc, a library with an interpreter", "/lib/x86_64-linux-gnu/libc.so.6".into(), 0),
        ("a library of the wrong class", class, 1),
        ("a text file", path("text"), 1),
        ("an empty file", path("empty"), 1),
        ("a directory", path(""), 1),
        ("no file", path("nothing"), 1),
    ];
    for (what, file, want) in cases {
        let reference = Command::new(&context.reference).arg("--verify").arg(&file).env_clear().output()?;
        let output = bare(context, &["--verify", &file.to_string_lossy()])?;
        let result = if reference.status.code() != Some(want) {
            Err(format!("ld-linux does not do what this case is about: expected {want}, got {reference:?}"))
        } else if output.status.code() == Some(want) && output.stdout.is_empty() && output.stderr == reference.stderr {
            Ok(())
        } else {
            Err(format!("expected {want} and {:?}\ngot      {output:?}", String::from_utf8_lossy(&reference.stderr)))
        };
        report.check(format!("--verify {what}"), result);
    }
    Ok(())
}
