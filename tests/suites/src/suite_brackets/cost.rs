//! What sections cost in system calls: strace counts rt_sigprocmask and rt_sigaction of a program that binds 20,000
//! functions and visits the objects 100,000 times, under ld-linux and in each back end of the loader.

use super::account;
use crate::harness::{Build, Context, Place, Report, Run, Way, copy_with_interpreter};
use anyhow::{Context as _, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Functions bound for the first time each.
const BINDINGS: u64 = 20_000;
/// Calls of dl_iterate_phdr.
const VISITS: u64 = 100_000;
/// One of so many of either in a guest, whose processor is as much slower.
const SLOWER: u64 = 20;

/// Calls of one run, and what the program wrote.
struct Counted {
    masks: u64,
    actions: u64,
    stdout: String,
    stderr: String,
}

/// Runs the checks.
pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let (theirs, ours) = programs(context)?;
    let slower = if context.place == Place::Guest { SLOWER } else { 1 };
    let (bindings, visits) = (BINDINGS / slower, VISITS / slower);
    let work = [bindings.to_string(), visits.to_string()];
    let plain = count(context, &theirs, None, &work)?;
    let sum: u64 = (0..bindings).sum();
    let printed = format!("{sum} {visits}\n");
    report.equal(format!("ld-linux: {bindings} functions, {visits} visits"), plain.stdout.as_str(), printed.as_str());
    for &back_end in context.place.back_ends().iter().chain(&["off"]) {
        let counted = count(context, &ours, Some(back_end), &work)?;
        report.equal(
            format!("{back_end}: {bindings} functions, {visits} visits"),
            counted.stdout.as_str(),
            printed.as_str(),
        );
        let account = match account(&counted.stderr) {
            Ok(account) => account,
            Err(error) => {
                report.check(format!("{back_end}: the account at exit"), Err(error));
                continue;
            }
        };
        report.note(format!("{back_end}: {} sections, {} rt_sigprocmask", account.sections, counted.masks));
        report.equal(format!("{back_end}: the back end that ran"), account.back_end.as_str(), back_end);
        report.equal(format!("{back_end}: nothing was held"), account.held, 0);
        report.equal(format!("{back_end}: no rt_sigaction of its own"), counted.actions, plain.actions);
        let own = counted.masks.checked_sub(plain.masks);
        let enough = account.sections >= bindings + visits;
        if back_end != "off" {
            let told = format!("expected at least {}\ngot      {}", bindings + visits, account.sections);
            report.check(
                format!("{back_end}: at least {} sections", bindings + visits),
                if enough { Ok(()) } else { Err(told) },
            );
        }
        let want = if back_end == "sigprocmask" { 2 * account.sections } else { 0 };
        report.equal(format!("{back_end}: rt_sigprocmask of its own, {want}"), own, Some(want));
    }
    others(context, report)?;
    numbers(context, report, &ours)
}

/// FreeBSD's number of its call is another's on Linux: it is never made, whatever was asked for, and the probe for
/// the patched kernel is one prctl where the kernel's back end may be chosen, none elsewhere.
fn numbers(context: &Context, report: &mut Report, program: &Path) -> Result<()> {
    let trace = context.work.join("numbers.trace");
    // A kernel that has it is also told what sections hold.
    let asked = if context.place == Place::Guest { 2 } else { 1 };
    for (value, probes) in [("auto", asked), ("kernel", asked), ("user", 0), ("sigprocmask", 0), ("off", 0)] {
        let run = Run::new("/usr/bin/strace").way(Way::Reference).unset("LD_SIGBLOCK");
        let run = run.args(["-f", "-qq", "-n", "-X", "raw", "-E", "LD_FALLBACK=never", "-E"]);
        let run = run.args([format!("LD_SIGBLOCK={value}"), "-o".to_owned()]).args([trace.as_os_str()]);
        let outcome = run.args([program.as_os_str()]).args(["10", "10"]).output(context)?;
        outcome.succeeded().map_err(anyhow::Error::msg)?;
        // "PID [NUMBER] NAME(ARGUMENTS) = RESULT"
        let text = fs::read_to_string(&trace)?;
        let number = |line: &str| line.split_once('[')?.1.split_once(']')?.0.trim().parse::<u32>().ok();
        let calls: Vec<u32> = text.lines().filter_map(number).collect();
        let of = |wanted: u32| calls.iter().filter(|&&call| call == wanted).count();
        report.equal(
            format!("LD_SIGBLOCK={value}: calls were seen, none of them 573"),
            (of(59) > 0, of(573)),
            (true, 0),
        );
        let asked = text.lines().filter(|line| line.contains("prctl(0x53464231")).count();
        report.equal(format!("LD_SIGBLOCK={value}: the kernel is asked {probes} times"), asked, probes);
    }
    Ok(())
}

/// Programs of the distribution: no call of either kind that they do not make under ld-linux, in the back end that the loader
/// chooses. Perl sets handlers.
fn others(context: &Context, report: &mut Report) -> Result<()> {
    let cases: [(&str, &[&str]); 3] = [
        ("/bin/true", &[]),
        ("/bin/ls", &["/"]),
        ("/usr/bin/perl", &["-e", "$SIG{USR1} = sub { print 5 }; kill 'USR1', $$;"]),
    ];
    for (program, arguments) in cases {
        let copy = context.work.join("others").join(program.trim_start_matches('/').replace('/', "_"));
        fs::create_dir_all(copy.parent().context("a parent")?)?;
        copy_with_interpreter(Path::new(program), &copy, &context.loader)?;
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let theirs = count(context, Path::new(program), None, &arguments)?;
        let ours = count(context, &copy, Some(context.place.auto()), &arguments)?;
        report.equal(format!("{program}: prints the same"), ours.stdout, theirs.stdout);
        let numbers = |counted: (u64, u64)| format!("{} rt_sigprocmask, {} rt_sigaction", counted.0, counted.1);
        let (got, want) = ((ours.masks, ours.actions), (theirs.masks, theirs.actions));
        let right = got.0 <= want.0 && got.1 <= want.1;
        let told = format!("expected at most {}\ngot      {}", numbers(want), numbers(got));
        report.check(format!("{program}: no call that it does not make"), if right { Ok(()) } else { Err(told) });
    }
    Ok(())
}

/// The program and its library, whose functions return their own number; with ld-linux and with our loader.
pub(super) fn programs(context: &Context) -> Result<(PathBuf, PathBuf)> {
    let mut library = String::from("\t.text\n");
    let mut calls = String::from(
        "\t.text\n\t.globl call_first\n\t.type call_first, @function\ncall_first:\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\txor %ebx, %ebx\n\tmov %rdi, %r12\n",
    );
    for number in 0..BINDINGS {
        writeln!(
            library,
            "\t.globl f{number}\n\t.type f{number}, @function\nf{number}:\n\tmov ${number}, %eax\n\tret"
        )?;
        writeln!(calls, "\tcmp ${number}, %r12\n\tjbe .Lend\n\tcall f{number}@PLT\n\tadd %rax, %rbx")?;
    }
    calls.push_str(".Lend:\n\tmov %rbx, %rax\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tret\n");
    for text in [&mut library, &mut calls] {
        text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    }
    let library = Build::inline("many.s", &library).shared().output("libmany.so").build(context)?;
    let program = |name: &str| {
        Build::new("sigblock/brackets/entries.c")
            .text("calls.s", &calls)
            .flags(&["-O1", "-Wl,-z,lazy"])
            .with(&library)
            .output(name)
    };
    let theirs = program("entries").build(context)?;
    let ours = program("entries-ours").interpreter(&context.loader).build(context)?;
    // That the program runs on our loader is asserted here, where nothing else traces it.
    let outcome = Run::new(&ours).way(Way::Interpreter).args(["10", "10"]).output(context)?;
    outcome.succeeded().map_err(anyhow::Error::msg)?;
    Ok((theirs, ours))
}

/// Counts the calls of one run. Variables of the loader are for the program only.
fn count(context: &Context, program: &Path, back_end: Option<&str>, arguments: &[String]) -> Result<Counted> {
    let summary = context.work.join("calls.summary");
    let mut run = Run::new("/usr/bin/strace")
        .way(Way::Reference)
        .unset("LD_SIGBLOCK")
        .args(["-f", "-qq", "-c", "-e", "trace=rt_sigprocmask,rt_sigaction,execve", "-o"])
        .args([summary.as_os_str()])
        .limit(300);
    if let Some(back_end) = back_end {
        run = run.args(["-E", "LD_FALLBACK=never", "-E", "LD_DEBUG=sigblock"]);
        if back_end != "kernel" {
            run = run.args(["-E".to_owned(), format!("LD_SIGBLOCK={back_end}")]);
        }
    }
    let outcome = run.args([program.as_os_str()]).args(arguments).output(context)?;
    outcome.succeeded().map_err(anyhow::Error::msg)?;
    let text = fs::read_to_string(&summary)?;
    // "% time, seconds, usecs/call, calls, [errors,] name"; without its exec strace saw nothing.
    let calls = |name: &str| {
        let line = text.lines().find(|line| line.split_whitespace().last() == Some(name));
        line.and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok())
    };
    calls("execve").with_context(|| format!("strace counted no execve: {text}"))?;
    Ok(Counted {
        masks: calls("rt_sigprocmask").unwrap_or(0),
        actions: calls("rt_sigaction").unwrap_or(0),
        stdout: outcome.text(),
        stderr: outcome.error_text(),
    })
}
