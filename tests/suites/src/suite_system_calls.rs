//! Suite `system-calls`: what a start costs in system calls, counted by strace for the same file with either loader as its
//! interpreter. docs/design.md names each call.

use crate::harness::{Build, Context, Report, Run, Way, always, backend, copy_with_interpreter, lookup};
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Calls that our loader may make beyond those of ld-linux: mapping and reading the passive file, and what takes the place of page
/// faults, which cost more than a call.
const ALLOWANCE: usize = 11;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let theirs_program = context.work.join("theirs/true");
    let ours_program = context.work.join("ours_/true");
    for program in [&theirs_program, &ours_program] {
        fs::create_dir_all(program.parent().context("a parent")?)?;
    }
    fs::copy("/bin/true", &theirs_program)?;
    copy_with_interpreter(Path::new("/bin/true"), &ours_program, &context.loader)?;
    // That the copy runs on our loader is asserted here, where nothing else traces it.
    report.check("the copy runs", Run::new(&ours_program).way(Way::Interpreter).output(context)?.succeeded());
    let theirs = calls(context, &theirs_program, "theirs.trace")?;
    let ours = calls(context, &ours_program, "ours.trace")?;
    report.note(format!("ld-linux:    {}", in_words(&theirs)));
    report.note(format!("ld-elf.so.1: {}", in_words(&ours)));
    let (theirs, ours) = (theirs.values().sum::<usize>(), ours.values().sum::<usize>());
    report.equal("strace saw calls under both loaders", theirs > 10 && ours > 10, true);
    // Made for such a small program only where it is asked for: mapped, and given back.
    let table = if lookup().as_deref() == Some("table") { 2 } else { 0 };
    let most = theirs + ALLOWANCE + table;
    let result = if ours <= most { Ok(()) } else { Err(format!("expected at most {most} calls\ngot      {ours}")) };
    report.check(format!("/bin/true: {ours} calls, {theirs} under ld-linux"), result);
    per_object(context, report)
}

/// What one more library costs: the file's header read once, one mapping of the whole span, one each over it for code,
/// constants and data, one for zeros, one call to make constant what is constant. The heap grows besides, when it must.
const PER_OBJECT: [(&str, usize); 6] =
    [("close", 1), ("fstat", 1), ("mmap", 5), ("mprotect", 1), ("openat", 1), ("pread64", 1)];

/// Memory of the loader itself: its heap, the main thread's block; mapped, or made.
const OWN_MEMORY: &str = "own memory";

/// How many libraries more the second program has.
const MORE: usize = 10;

/// The exact calls for each library of a usual shape that a program needs.
fn per_object(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let mut traced = Vec::new();
    for count in [2, 2 + MORE] {
        let directory = format!("libraries-{count}");
        let main = Build::inline("main.c", "int main(void) { return 0; }\n");
        let mut program = main.flags(&["-Wl,--no-as-needed,-rpath,$ORIGIN"]).output(format!("{directory}/program"));
        for number in 0..count {
            let name = format!("-DNAME(x)=x##_{number}");
            let library = Build::new("system-calls/library.c").shared().flags(&["-nostdlib", "-Wl,-z,now", &name]);
            program = program.with(library.output(format!("{directory}/library{number}.so")).build(context)?);
        }
        let program = program.build(context)?;
        let ours = context.work.join(format!("{directory}/ours"));
        copy_with_interpreter(&program, &ours, &context.loader)?;
        traced.push(calls(context, &ours, "libraries.trace")?);
    }
    let [few, many] = traced.as_slice() else { anyhow::bail!("two programs") };
    let of = |counts: &BTreeMap<String, usize>, name: &String| counts.get(name).copied().unwrap_or(0);
    let more: BTreeMap<String, usize> = many
        .keys()
        .map(|name| (name.clone(), of(many, name).saturating_sub(of(few, name))))
        .filter(|(name, more)| *more > 0 && name != OWN_MEMORY)
        .collect();
    let want = PER_OBJECT.map(|(name, count)| (name.to_owned(), count * MORE));
    report.equal(format!("calls for {MORE} libraries more"), more, BTreeMap::from(want));
    Ok(())
}

/// The calls of one run by name, from its exec on; those of sections are left out.
fn calls(context: &Context, program: &Path, trace: &str) -> anyhow::Result<BTreeMap<String, usize>> {
    let trace = context.work.join(trace);
    let mut strace = Run::new("/usr/bin/strace").way(Way::Reference).args(["-f", "-qq"]);
    for (name, value) in always() {
        strace = strace.args(["-E", &format!("{name}={value}")]);
    }
    let outcome = strace.args(["-o".as_ref(), trace.as_os_str(), program.as_os_str()]).output(context)?;
    outcome.succeeded().map_err(anyhow::Error::msg)?;
    let mut counts = BTreeMap::new();
    for line in fs::read_to_string(&trace)?.lines() {
        // "PID NAME(ARGUMENTS) = RESULT"; lines about signals and exit have no name before a bracket.
        let call = line.split_once(' ').map_or(line, |(_, call)| call.trim_start());
        let Some((name, _)) = call.split_once('(') else {
            continue;
        };
        if !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            // The segments of these libraries are made as they are mapped.
            let own = name == "madvise" || name == "mmap" && call.contains("(NULL, ") && call.contains("MAP_ANONYMOUS");
            let name = if own { OWN_MEMORY } else { name };
            *counts.entry(name.to_owned()).or_insert(0) += 1;
        }
    }
    if backend().as_deref() == Some("sigprocmask") {
        // Two a section, which suite `brackets` counts.
        counts.remove("rt_sigprocmask");
    }
    Ok(counts)
}

fn in_words(counts: &BTreeMap<String, usize>) -> String {
    let total: usize = counts.values().sum();
    let list: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    format!("{total} calls: {}", list.join(", "))
}
