//! Suite `debugger`: what a debugger reads of a running program, read by the program itself and by gdb. Owns the comparison of
//! the object list with ld-linux's, and gdb's sessions.

mod workers;

use crate::harness::{Build, Context, Report, Run, Status, WAYS, Way, always, environment};
use crate::same::label;
use anyhow::{Context as _, bail};
use object::{Object as _, ObjectSymbol as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    list(context, report)?;
    stops(context, report)?;
    functions(context, report)?;
    threads(context, report)?;
    workers::run(context, report)
}

/// The two programs have debug information and a library beside them.
fn build(context: &Context, program: &str, library: &str, interpreter: bool) -> anyhow::Result<PathBuf> {
    let library = Build::new(format!("debugger/{library}.c")).shared().flags(&["-g", "-O0"]).build(context)?;
    let mut build = Build::new(format!("debugger/{program}.c")).flags(&["-g", "-O0", "-pthread"]).with(&library);
    if interpreter {
        build = build.interpreter(&context.loader).output(format!("{program}-interpreted"));
    }
    build.build(context)
}

/// r_debug and the list of objects, as the program sees them.
fn list(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = build(context, "list", "library", false)?;
    let stop = debug_state(&context.loader)?;
    for (way, bind) in WAYS {
        let result = (|| -> anyhow::Result<Result<(), String>> {
            let reference = Run::new(&program).way(Way::Reference).bind(bind).output(context)?;
            let outcome = Run::new(&program).way(way).bind(bind).output(context)?;
            if reference.status != Status::Exit(0) {
                bail!("ld-linux: {}", reference.describe());
            }
            let ours = outcome.text();
            let own = format!("object {}", context.loader.display());
            let mut errors = Vec::new();
            if outcome.status != Status::Exit(0) {
                errors.push("exit status".to_owned());
            }
            for line in [
                "version 1",
                "state consistent",
                "links back 1, dynamic sections 1, program first 1",
                "objects at r_ldbase 1",
                &own,
                &format!("break {stop:#x}"),
            ] {
                if ours.lines().filter(|got| *got == line).count() != 1 {
                    errors.push(format!("no line {line:?}"));
                }
            }
            // Ours is one object more; ld-linux's own file has another name when it is only a library.
            let (ours, theirs) = (objects(&ours, &own), objects(&reference.text(), &own));
            if ours != theirs || ours.first().is_none_or(|name| name != "object ") {
                errors.push(format!("objects {ours:?}, under ld-linux {theirs:?}"));
            }
            Ok(if errors.is_empty() {
                Ok(())
            } else {
                Err(format!("{}\ngot      {}", errors.join("\n"), outcome.describe()))
            })
        })();
        let result = result.unwrap_or_else(|error| Err(format!("{error:#}")));
        report.check(format!("r_debug and the list of objects ({})", label(way, bind)), result);
    }
    Ok(())
}

/// The object lines less the loaders themselves.
fn objects(text: &str, own: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with("object "));
    lines.filter(|line| *line != own && !line.ends_with("/ld-linux-x86-64.so.2")).map(str::to_owned).collect()
}

/// Where `_dl_debug_state` lies in the loader's file: r_brk less r_ldbase.
fn debug_state(loader: &Path) -> anyhow::Result<u64> {
    let bytes = std::fs::read(loader)?;
    let file = object::File::parse(&*bytes)?;
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok("_dl_debug_state"));
    Ok(symbol.context("the loader has no dynamic symbol _dl_debug_state")?.address())
}

/// What gdb prints for these commands on a program whose interpreter is our loader.
fn gdb(context: &Context, program: &Path, commands: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("gdb");
    command.args(["-batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set startup-with-shell off"]);
    command.args(["-ex", "set breakpoint pending on"]);
    for line in commands {
        command.args(["-ex", line]);
    }
    command.arg(program).current_dir(&context.work).env_clear().envs(environment()).envs(always());
    let output = command.stdin(Stdio::null()).output().context("gdb (Debian package gdb)")?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("gdb: {}\n{text}", output.status);
    }
    Ok(text)
}

/// Checks that each of `wanted` is in some line, and that no frame is without a name.
fn told(report: &mut Report, name: &str, text: &str, wanted: &[&str]) {
    for word in wanted {
        let found = text.lines().any(|line| line.contains(word));
        report.check(
            format!("{name}: {word}"),
            if found { Ok(()) } else { Err(format!("expected a line with {word:?}\ngot      {text}")) },
        );
    }
    let nameless = text.lines().any(|line| line.starts_with('#') && line.contains(" ?? "));
    report.check(
        format!("{name}: every frame has a name"),
        if nameless { Err(format!("a frame `??` in\n{text}")) } else { Ok(()) },
    );
}

/// Breakpoints in a constructor, in the C library and in a library; the list of libraries.
fn stops(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = build(context, "list", "library", true)?;
    let loader = context.loader.display().to_string();
    let library = context.work.join("liblibrary.so").display().to_string();
    let commands = ["break library_constructor", "run", "backtrace", "info sharedlibrary"];
    let text = gdb(context, &program, &commands)?;
    // The pending breakpoint is found only if gdb was stopped when the library had just been loaded.
    let wanted =
        ["Breakpoint 1, library_constructor", "#0  library_constructor () at", "#1  ", &library, "libc.so.6", &loader];
    told(report, "in a constructor", &text, &wanted);

    let commands = [
        "break main",
        "run",
        "break write",
        "continue",
        "backtrace",
        "break library_function",
        "continue",
        "backtrace",
        "finish",
        "info symbol _dl_debug_state",
    ];
    let text = gdb(context, &program, &commands)?;
    let wanted = [
        "write",
        " in library () at",
        " in main () at",
        "#0  library_function (x=0) at",
        "Value returned is $1 = 1",
        "_dl_debug_state in section .text",
    ];
    told(report, "in the C library", &text, &wanted);

    let commands = ["set stop-on-solib-events 1", "run", "info sharedlibrary", "continue", "info sharedlibrary"];
    let text = gdb(context, &program, &commands)?;
    told(report, "stopped by the loader", &text, &["Stopped due to shared library event", &library]);
    Ok(())
}

/// Breakpoints at functions that are the loader's own in place of the C library's.
fn functions(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = Build::new("debugger/opener.c").flags(&["-g", "-O0"]).interpreter(&context.loader).build(context)?;
    const NAMES: [&str; 5] = ["dlopen", "dlsym", "dlvsym", "dl_iterate_phdr", "dlclose"];
    // What gdb calls the places: each has two names.
    const PLACES: [&str; 5] = ["rtld_dlopen", "rtld_dlsym", "rtld_dlvsym", "rtld_iterate", "rtld_dlclose"];
    let breaks = NAMES.map(|name| format!("break {name}"));
    let mut commands = vec!["break main", "run"];
    commands.extend(breaks.iter().map(String::as_str));
    for _ in NAMES {
        commands.extend(["continue", "backtrace"]);
    }
    let text = gdb(context, &program, &commands)?;
    let wanted = PLACES.map(|name| format!("in {name} () from {}", context.loader.display()));
    let mut wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    wanted.push("#1  0x");
    told(report, "at functions of <dlfcn.h>", &text, &wanted);
    Ok(())
}

/// Threads and thread-local variables, which libthread_db finds in the C library's private data.
fn threads(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = build(context, "threads", "threads_library", true)?;
    let commands = [
        "break stop_here",
        "run",
        "backtrace",
        "info threads",
        "thread apply 1 print program_local * 100 + library_local",
        "thread apply 2 print program_local * 100 + library_local",
        "info sharedlibrary",
    ];
    let text = gdb(context, &program, &commands)?;
    let loader = context.loader.display().to_string();
    told(report, "threads", &text, &["#0  stop_here () at", "#1  ", "$1 = 2030", "$2 = 2131", &loader]);
    Ok(())
}
