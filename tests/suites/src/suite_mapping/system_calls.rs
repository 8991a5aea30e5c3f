//! The system calls that mapping makes, seen by strace: the shape that recorders and debuggers know, and no memory that is writable and
//! executable at once.

use std::process::Command;

use anyhow::Context as _;

use super::probe::{Probe, SONAME};
use crate::elf_writer::Library;
use crate::harness::{Context, Report, Run, Way, interpreter_of};

pub fn run(context: &Context, report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    let name = "system calls";
    Library::ordinary(SONAME).write(&probe.directory(name).join(SONAME))?;
    for way in [Way::Reference, Way::Direct, Way::Interpreter] {
        let run =
            Run::new(probe.program()).way(way).env("LD_LIBRARY_PATH", probe.directory(name)).args(["2800", "r:2800"]);
        let lines = trace(context, &run, "openat,open,close,mmap,mprotect");
        let shape = lines
            .as_ref()
            .map_err(String::clone)
            .and_then(|lines| shape(lines).map_err(|message| format!("{message}\n{}", lines.join("\n"))));
        let writable = lines.and_then(|lines| writable_and_executable(&lines));
        if way == Way::Reference {
            shape.and(writable).map_err(|message| anyhow::anyhow!("ld-linux does otherwise: {message}"))?;
        } else {
            report.check(
                format!("a library is mapped by one call over its whole span, then by MAP_FIXED inside, {way:?}"),
                shape,
            );
            report.check(format!("no memory is ever writable and executable, {way:?}"), writable);
        }
    }
    Ok(())
}

/// rr and gdb recognise a library by its first mapping: the file, no address asked, readable, over the whole span.
fn shape(lines: &[String]) -> Result<(), String> {
    let open = lines
        .iter()
        .position(|line| line.contains("/libodd.so\"") && !line.contains("= -1"))
        .ok_or("the library was not opened")?;
    let mut rest = lines.iter().skip(open);
    let descriptor = rest.next().and_then(|line| line.rsplit("= ").next()).ok_or("no descriptor")?.trim().to_owned();
    let mut maps = Vec::new();
    let mut closed = false;
    for line in rest {
        if line.starts_with("close(") && line.contains(&format!("({descriptor})")) {
            closed = true;
            break;
        }
        if line.starts_with("mmap(") {
            maps.push(line);
        }
    }
    let (first, others) = maps.split_first().ok_or("nothing was mapped")?;
    let fields: Vec<&str> = first.split(['(', ',', ')']).map(str::trim).collect();
    // mmap, address, length, protection, flags, descriptor, offset. The span of the library is four pages.
    let want: [Option<&str>; 7] =
        [None, Some("NULL"), Some("16384"), Some("PROT_READ"), None, Some(&descriptor), Some("0")];
    for (want, got) in want.iter().zip(&fields) {
        if want.is_some_and(|want| want != *got) {
            return Err(format!("the first mapping is not (NULL, 16384, PROT_READ, ..., {descriptor}, 0): {first}"));
        }
    }
    if let Some(line) = others.iter().find(|line| !line.contains("MAP_FIXED")) {
        return Err(format!("a later mapping without MAP_FIXED: {line}"));
    }
    if closed { Ok(()) } else { Err("the file was not closed".into()) }
}

/// An error that names the first call that asks for writable and executable memory.
pub fn writable_and_executable(lines: &[String]) -> Result<(), String> {
    match lines.iter().find(|line| line.contains("PROT_WRITE") && line.contains("PROT_EXEC")) {
        Some(line) => Err(line.clone()),
        None => Ok(()),
    }
}

/// The calls of `run` that are named in `calls`, one a line as strace writes them; in words why there are none, for instance because the
/// program did not end with 0.
pub fn trace(context: &Context, run: &Run, calls: &str) -> Result<Vec<String>, String> {
    strace(context, run, calls).map_err(|error| format!("{error:#}"))
}

fn strace(context: &Context, run: &Run, calls: &str) -> anyhow::Result<Vec<String>> {
    let log = context.work.join("strace.log");
    let command = run.command(context)?;
    let program = std::path::Path::new(command.get_program());
    if program != context.loader {
        let interpreter = interpreter_of(program)?.context("no interpreter")?;
        anyhow::ensure!(
            interpreter == context.loader || interpreter.canonicalize()? == context.reference,
            "{} would run on {}",
            program.display(),
            interpreter.display()
        );
    }
    let mut strace = Command::new("/usr/bin/strace");
    strace.arg("-o").arg(&log).arg("-e").arg(format!("trace={calls}"));
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            // Into the program only: strace itself runs on ld-linux.
            let mut assignment = name.to_owned();
            assignment.push("=");
            assignment.push(value);
            strace.arg("-E").arg(assignment);
        }
    }
    strace.arg(program).args(command.get_args()).env_clear();
    if let Some(directory) = command.get_current_dir() {
        strace.current_dir(directory);
    }
    let outcome = strace.output().context("/usr/bin/strace is not installed (Debian package strace)")?;
    // Not the command as it is: its environment would fill the report.
    let arguments: Vec<_> = command.get_args().collect();
    let error = String::from_utf8_lossy(&outcome.stderr);
    anyhow::ensure!(outcome.status.success(), "strace {program:?} {arguments:?}: {}\n{error}", outcome.status);
    Ok(std::fs::read_to_string(&log)?.lines().map(str::to_owned).collect())
}
