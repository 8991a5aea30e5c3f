//! Suite `tools`: what people look at programs with. memcheck reports nothing new and all the old, `backtrace()` names
//! each frame, strace shows the calls and unwinds through our loader, perf names our loader's functions. Each is
//! compared with the same tool on the same program under ld-linux in the same run. gdb has a suite of its own
//! (`debugger`), sanitizers too.

use crate::harness::{Build, Context, Report, Run, Way, always, copy_with_interpreter, environment};
use crate::same::{Want, same};
use anyhow::{Context as _, bail, ensure};
use object::{Object as _, ObjectSection as _};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    memcheck(context, report)?;
    frames(context, report)?;
    system_calls(context, report)?;
    profile(context, report)?;
    file(context, report)
}

/// A tool's output on a program, which itself is started by the kernel.
fn tool(context: &Context, arguments: &[OsString]) -> anyhow::Result<Output> {
    let Some((tool, arguments)) = arguments.split_first() else { bail!("no tool") };
    let mut command = Command::new(tool);
    command.args(arguments).env_clear().envs(environment()).envs(always());
    command.current_dir(&context.work).stdin(Stdio::null());
    command.output().with_context(|| format!("{} (Debian package of that name; linux-perf has perf)", tool.display()))
}

/// A command line of words and paths.
macro_rules! words {
    ($($word:expr),* $(,)?) => { [$(OsString::from($word)),*] };
}

/// The program and a copy of it on our loader, both under the same file name.
fn pair(context: &Context, program: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    let directory = context.work.join("ours");
    fs::create_dir_all(&directory)?;
    let copy = directory.join(program.file_name().context("a program has a name")?);
    copy_with_interpreter(program, &copy, &context.loader)?;
    Ok((program.to_owned(), copy))
}

/// memcheck, with every kind of leak shown.
fn memcheck(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = Build::new("tools/memory.c").flags(&["-g", "-O0", "-pthread"]).build(context)?;
    let (reference, ours) = pair(context, &program)?;
    for (name, argument, wanted) in [
        ("memcheck, a clean program", None, "sum 21"),
        ("memcheck, mistakes", Some("mistakes"), "33 bytes in 1 blocks are definitely lost"),
    ] {
        let reports = |program: &Path| -> anyhow::Result<(Option<i32>, String)> {
            let mut line =
                words!["valgrind", "-q", "--leak-check=full", "--show-leak-kinds=all", "--error-exitcode=9"].to_vec();
            line.push(program.into());
            line.extend(argument.map(OsString::from));
            let output = tool(context, &line)?;
            Ok((output.status.code(), without_numbers(&text(&output))))
        };
        let (want, got) = (reports(&reference)?, reports(&ours)?);
        ensure!(want.1.contains(wanted), "memcheck under ld-linux does not say {wanted:?}: {want:?}");
        ensure!(want.0 == Some(if argument.is_some() { 9 } else { 0 }), "memcheck under ld-linux: {want:?}");
        report.equal(format!("{name}: reports as under ld-linux"), got, want);
    }
    Ok(())
}

/// Standard output and error, as text.
fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Process ids in front of lines and addresses, which differ from run to run.
fn without_numbers(text: &str) -> String {
    let word = |word: &str| {
        let bare = word.trim_end_matches([':', ',']);
        let number = bare.strip_prefix("0x").is_some_and(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()));
        let process = word.starts_with("==") && word.ends_with("==");
        if number || process { "?".to_owned() } else { word.to_owned() }
    };
    text.lines().map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n").collect()
}

/// backtrace() and backtrace_symbols() in the program itself, four ways.
fn frames(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    Build::new("tools/backtrace_library.c")
        .shared()
        .flags(&["-O1", "-Wl,-Bsymbolic"])
        .output("libplugin.so")
        .build(context)?;
    let library = Build::new("tools/backtrace_library.c").shared().flag("-O1").build(context)?;
    let program = Build::new("tools/backtrace.c")
        .flags(&["-O1", "-fno-optimize-sibling-calls", "-rdynamic", "-pthread", "-Wl,-rpath,$ORIGIN"])
        .with(&library)
        .output("frames")
        .build(context)?;
    let wanted = [
        "  libbacktrace_library.so(library_constructor+",
        "in a constructor\n  frames(frames+",
        "through a library\n  frames(frames+",
        "  libbacktrace_library.so(library_call+",
        "  frames(handler+",
        "  frames(thread+",
        "through a plug-in\nin a library's constructor\n",
        "  libplugin.so(library_constructor+",
        "  the loader\n  frames(main+",
        "  libplugin.so(library_call+",
        "  frames(main+",
        "  frames(_start+",
    ];
    let reference = Run::new(&program).way(Way::Reference).output(context)?;
    let output = reference.text();
    for word in wanted {
        ensure!(output.contains(word), "under ld-linux no {word:?} in {output}");
    }
    same(context, report, "backtrace", &program, Want::Clean(output.trim()), |run| run);
    Ok(())
}

/// strace: the calls of the program's own code, each with the frames that led to it.
fn system_calls(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = Build::new("tools/memory.c").flags(&["-g", "-O0", "-pthread"]).output("traced").build(context)?;
    let (reference, ours) = pair(context, &program)?;
    let calls = |program: &Path, log: &str| -> anyhow::Result<String> {
        let log = context.work.join(log);
        let output = tool(context, &words!["strace", "-f", "-k", "-e", "trace=write,exit_group", "-o", &log, program])?;
        ensure!(output.status.success(), "strace: {}", text(&output));
        // Process ids and paths aside.
        let log = fs::read_to_string(&log)?;
        let line = |line: &str| {
            let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
            line.replace(&format!("{}", program.display()), "PROGRAM") + "\n"
        };
        Ok(log.lines().map(line).collect())
    };
    let (want, got) = (calls(&reference, "reference.log")?, calls(&ours, "ours.log")?);
    for word in ["write(1, \"sum 21\\n\", 7", "PROGRAM(_start", "exit_group(0)"] {
        ensure!(want.contains(word), "strace under ld-linux shows no {word:?}: {want}");
    }
    report.equal("strace -f -k: calls and the frames that led to them", got, want);
    Ok(())
}

/// perf: functions of our loader by name.
fn profile(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = Build::new("tools/lookups.c").flag("-O1").build(context)?;
    let (_, ours) = pair(context, &program)?;
    let data = context.work.join("perf.data");
    let record = words!["perf", "record", "-q", "-B", "-N", "-e", "cpu-clock:u", "-F", "2000", "-o", &data, &ours];
    let output = tool(context, &record)?;
    ensure!(
        output.status.success(),
        "perf record (needs perf_event_open(2): root, or perf_event_paranoid < 2): {}",
        text(&output)
    );
    let listed =
        words!["perf", "report", "-i", &data, "--stdio", "--sort", "dso,symbol", "-F", "sample,dso,symbol", "-t", "|"];
    let output = tool(context, &listed)?;
    ensure!(output.status.success(), "perf report: {}", text(&output));
    let (mut named, mut nameless) = (0, Vec::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        // "SAMPLES|OBJECT|[.] SYMBOL"
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [samples, object, symbol, ..] = fields.as_slice() else { continue };
        if *object != "ld" {
            continue;
        }
        if symbol.contains("0x") || symbol.contains("unknown") {
            nameless.push(line.to_owned());
        } else {
            named += samples.parse::<u64>().unwrap_or(0);
        }
    }
    report.check(
        "perf: our loader's functions have names",
        if named >= 20 && nameless.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "expected 20 samples with names or more and none without\ngot      {named}, {nameless:?}\n{}",
                text(&output)
            ))
        },
    );
    report.note(format!("perf: {named} samples in our loader, all with names"));
    Ok(())
}

/// What these tools need of the loader's own file.
fn file(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let bytes = fs::read(&context.loader)?;
    let file = object::File::parse(&*bytes)?;
    report.equal("the loader has a build id", file.build_id()?.is_some_and(|id| id.len() >= 16), true);
    for section in [".symtab", ".eh_frame", ".eh_frame_hdr", ".debug_line"] {
        let size = file.section_by_name(section).map_or(0, |section| section.size());
        report
            .check(format!("the loader has {section}"), if size > 0 { Ok(()) } else { Err("it has none".to_owned()) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_run_are_replaced() {
        let line = "==12== Invalid read of size 4\n==12==    at 0x109330: main (m.c:10)\n";
        assert_eq!(without_numbers(line), "? Invalid read of size 4\n?    at ? main (m.c:10)\n");
    }
}
