//! Our whole system as strace tells it: of each program that a build starts, `strace -f -e execve,openat` (itself on
//! our loader) shows the exec and then ld-linux's file being opened, which only a foreign loader does: to ld-linux it
//! is itself.

use super::{World, prepare};
use crate::harness::{Context, Report, Status};
use crate::process_tree::{self, Follow};
use crate::whole_system::WholeSystem;
use std::collections::BTreeMap;
use std::fs;

/// Runs the two checks.
pub fn run(context: &Context, report: &mut Report, system: &WholeSystem) -> anyhow::Result<()> {
    let ours = starts(context, system, World::Ours)?;
    let wrong: Vec<_> = ours.iter().filter(|start| !start.opens).collect();
    report.check(
        "strace -f -e execve,openat: each program started opens ld-linux's file as a library",
        if wrong.is_empty() && ours.len() >= 5 {
            Ok(())
        } else {
            Err(format!("expected 5 programs or more, all of which open it\ngot      {ours:?}"))
        },
    );
    let theirs = starts(context, system, World::Machine)?;
    report.equal("strace -f -e execve,openat: under ld-linux as many programs", theirs.len(), ours.len());
    // The linker reads the file too: it is part of the C library's linker script.
    let wrong: Vec<_> = theirs.iter().filter(|start| start.opens && !start.exec.contains("/ld\"")).collect();
    report.check(
        "strace -f -e execve,openat: under ld-linux none does but the linker",
        if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong:?}")) },
    );
    Ok(())
}

/// One successful exec.
#[derive(Debug)]
struct Start {
    process: String,
    /// The line of the call.
    exec: String,
    /// Whether the process opened ld-linux's file between this exec and its next.
    opens: bool,
}

/// What strace tells about compiling and running a program.
fn starts(context: &Context, system: &WholeSystem, world: World) -> anyhow::Result<Vec<Start>> {
    let (mut command, directory) = prepare(context, system, "strace", "strace", world)?;
    let log = directory.join("log");
    command.args(["-f", "-e", "trace=execve,openat", "-o"]).arg(&log);
    command.args(["/bin/sh", "-c", "g++ -O0 -pthread -o hello $PROGRAMS/hello.cpp && ./hello"]);
    let tree = process_tree::run(&mut command, system, &directory.with_extension("output"), Follow::First, 180)?;
    if tree.outcome.status != Status::Exit(0) {
        anyhow::bail!("strace (Debian package strace): {}", tree.outcome.describe());
    }
    let mut starts = Vec::<Start>::new();
    // Calls cut in two by another process's line: the first half has the path, the second the result.
    let mut unfinished = BTreeMap::<String, String>::new();
    for line in fs::read_to_string(&log)?.lines() {
        let Some((process, call)) = line.split_once(' ') else { continue };
        let mut call = call.trim_start().to_owned();
        if let Some(begin) = call.strip_suffix("<unfinished ...>") {
            unfinished.insert(process.to_owned(), begin.to_owned());
            continue;
        }
        if call.starts_with("<... ") {
            call.insert_str(0, &unfinished.remove(process).unwrap_or_default());
        }
        let succeeded = call.rsplit_once(" = ").is_some_and(|(_, result)| !result.starts_with('-'));
        if succeeded && call.starts_with("execve(") {
            starts.push(Start { process: process.to_owned(), exec: call, opens: false });
        } else if succeeded
            && call.starts_with("openat(")
            && call.contains("/ld-linux-x86-64.so.2\"")
            && let Some(start) = starts.iter_mut().rfind(|start| start.process == process)
        {
            start.opens = true;
        }
    }
    Ok(starts)
}
