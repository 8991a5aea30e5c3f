//! How a back end is chosen, named and told: LD_SIGBLOCK and its wrong values, LD_SIGBLOCK_MASK's, secure mode,
//! --list-diagnostics. The kernel's back end is a value that can be had in a guest of the kernel lab only.

use super::account;
use crate::harness::{Build, Context, Place, Report, Run, Way, environment};
use anyhow::{Result, ensure};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs: an ordinary one; one that starts others; the first as it is to be, and as it is to be set-uid.
pub(super) fn programs(context: &Context) -> Result<[PathBuf; 4]> {
    let program = Build::new("sigblock/brackets/chosen.c").flags(&["-O1", "-pthread"]);
    let with_loader = |name: &str| program.clone().interpreter(&context.loader).output(name).build(context);
    Ok([
        program.build(context)?,
        Build::new("secure/launch.c").output("bin/launch").build(context)?,
        with_loader("bin/plain")?,
        with_loader("bin/privileged")?,
    ])
}

/// Runs the checks.
pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let [program, ..] = programs(context)?;
    values(context, report, &program)?;
    diagnostics(context, report)?;
    secure(context, report)
}

/// What chosen.c prints in a back end, with these variables.
fn printed(back_end: &str, variable: &str, list: &str, held: bool) -> String {
    let inside = if held { "inside 0 after 1" } else { "inside 1 after 1" };
    format!("{back_end} environment {variable} {list}\n{inside} same 1\n")
}

/// Values of LD_SIGBLOCK that can be had, with the back end that each is.
fn had(place: Place) -> Vec<(&'static str, &'static str)> {
    let mut values = vec![("auto", place.auto()), ("user", "user"), ("sigprocmask", "sigprocmask"), ("off", "off")];
    if place == Place::Guest {
        values.push(("kernel", "kernel"));
    }
    values
}

fn values(context: &Context, report: &mut Report, program: &Path) -> Result<()> {
    let auto = context.place.auto();
    let run = |variables: &[(&str, &str)], way| {
        let mut run = Run::new(program).way(way).unset("LD_SIGBLOCK");
        for (name, value) in variables {
            run = run.env(name, value);
        }
        run.output(context)
    };
    for way in [Way::Direct, Way::Interpreter] {
        let outcome = run(&[], way)?;
        let want = printed(context.place.auto(), "-", "-", true);
        report.equal(format!("no value ({way:?})"), (outcome.text(), outcome.error_text()), (want, String::new()));
        for (value, back_end) in had(context.place) {
            let outcome = run(&[("LD_SIGBLOCK", value)], way)?;
            let want = printed(back_end, value, "-", back_end != "off");
            report.equal(
                format!("LD_SIGBLOCK={value} ({way:?})"),
                (outcome.text(), outcome.error_text()),
                (want, String::new()),
            );
        }
    }
    // One line each, then auto.
    let wrong = ["kernel", "no", "USER", "user ", "user,off", "0", "sigfastblock"];
    for value in wrong.into_iter().filter(|&value| had(context.place).iter().all(|&(other, _)| other != value)) {
        let outcome = run(&[("LD_SIGBLOCK", value)], Way::Interpreter)?;
        report.equal(format!("LD_SIGBLOCK={value} is {auto}"), outcome.text(), printed(auto, value, "-", true));
        let prefix = format!("{}: LD_SIGBLOCK={value}: ", program.display());
        report.check(format!("LD_SIGBLOCK={value} is answered by a line"), one_line(&outcome.error_text(), &prefix));
    }
    for list in ["USR", "0", "65", "RTMIN+31", "RTMAX+1", "1-3", "USR1 USR2"] {
        let outcome = run(&[("LD_SIGBLOCK_MASK", list)], Way::Interpreter)?;
        report.check(format!("LD_SIGBLOCK_MASK={list} runs"), outcome.succeeded());
        let text = outcome.text();
        let got = text.lines().last().unwrap_or_default();
        report.equal(format!("LD_SIGBLOCK_MASK={list}: all are held"), got, "inside 0 after 1 same 1");
        let prefix = format!("{}: LD_SIGBLOCK_MASK={list}: ", program.display());
        report
            .check(format!("LD_SIGBLOCK_MASK={list} is answered by a line"), one_line(&outcome.error_text(), &prefix));
    }
    let outcome = run(&[("LD_SIGBLOCK", "no"), ("LD_DEBUG", "sigblock")], Way::Interpreter)?;
    let text = outcome.error_text();
    let last = text.split_inclusive('\n').next_back().unwrap_or_default();
    report.equal("a wrong value and the account", account(last).map(|account| account.back_end), Ok(auto.to_owned()));
    Ok(())
}

/// Whether `text` is one line that begins so.
fn one_line(text: &str, prefix: &str) -> Result<(), String> {
    let right = text.starts_with(prefix) && text.ends_with('\n') && text.lines().count() == 1;
    if right { Ok(()) } else { Err(format!("expected one line {prefix}...\ngot      {text}")) }
}

/// The loader by itself, without a program.
fn diagnostics(context: &Context, report: &mut Report) -> Result<()> {
    for (value, back_end) in had(context.place) {
        let mut command = Command::new(&context.loader);
        command.arg("--list-diagnostics").env_clear().envs(environment()).env("LD_SIGBLOCK", value);
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let wanted = format!("sigblock.backend=\"{back_end}\"");
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("sigblock.backend=")).collect();
        report.equal(
            format!("--list-diagnostics, LD_SIGBLOCK={value}"),
            (lines, output.status.code(), output.stderr.len()),
            (vec![wanted.as_str()], Some(0), 0),
        );
    }
    Ok(())
}

/// A set-uid program: nothing of it is listened to, said or handed on.
fn secure(context: &Context, report: &mut Report) -> Result<()> {
    ensure!(nix::unistd::geteuid().is_root(), "set-uid programs of root can only be made by root");
    let [_, launch, plain, privileged] = programs(context)?;
    chown(&privileged, Some(0), Some(0))?;
    fs::set_permissions(&privileged, fs::Permissions::from_mode(0o4755))?;
    let start = |program: &Path, variables: &[&str]| {
        let mut command = Command::new(&launch);
        command.arg("65534").arg(program).arg("--").args(variables).env_clear().current_dir(&context.work);
        command.output()
    };
    let variables = ["LD_SIGBLOCK=off", "LD_SIGBLOCK_MASK=USR2", "LD_DEBUG=sigblock"];
    let output = start(&plain, &variables)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    report.equal(
        "control: the variables work on a program that is not set-uid",
        text(&output.stdout),
        printed("off", "off", "USR2", false),
    );
    for variables in [&variables[..], &["LD_SIGBLOCK=nonsense", "LD_SIGBLOCK_MASK=nonsense"]] {
        let output = start(&privileged, variables)?;
        report.equal(
            format!("secure mode: {}", variables.join(" ")),
            (text(&output.stdout), text(&output.stderr)),
            (printed(context.place.auto(), "-", "-", true), String::new()),
        );
    }
    Ok(())
}
