//! A run of the loader under ptrace that tells, when a signal ends it, whose code that signal came from. Owns the tracing and
//! the rule: a fault is the file's own fault only if its code, or the program's, was running.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::harness::{Context, FileIdentity, Run, mapped_files};

/// How a traced run ended.
pub enum End {
    /// By exit.
    Exit(i32),
    /// By a fatal signal while other code than the loader's was running.
    SignalElsewhere,
    /// By a jump to an address that is none, from nobody knows where: signal and what is known.
    Nowhere(String),
    /// The loader gave up by abort(3)'s signal.
    Abort,
    /// By a fatal signal in the loader's code: signal and place.
    SignalInLoader(String),
    /// It did not end in time.
    TimedOut,
}

/// End and outputs of a traced run.
pub struct Traced {
    /// How it ended.
    pub end: End,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// No damaged file may keep the loader busy longer than this; a limit against hanging, not a measurement.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs `run` to its end. The outputs must fit into a pipe, else the run counts as hanging.
pub fn trace(context: &Context, run: &Run) -> Result<Traced> {
    let mut command = run.command(context)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: between fork and exec the closure makes one system call: no allocation, no lock.
    unsafe { command.pre_exec(|| Ok(ptrace::traceme()?)) };
    let mut child = command.spawn()?;
    let result = follow(context, &child);
    if result.is_err() {
        let _ = child.kill();
        let _ = waitpid(pid(&child)?, None);
    }
    let end = result?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    if let Some(pipe) = &mut child.stdout {
        pipe.read_to_end(&mut stdout)?;
    }
    if let Some(pipe) = &mut child.stderr {
        pipe.read_to_end(&mut stderr)?;
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Traced { end, stdout: text(stdout), stderr: text(stderr) })
}

fn pid(child: &Child) -> Result<Pid> {
    Ok(Pid::from_raw(i32::try_from(child.id())?))
}

/// Follows the child from its exec stop to its end.
fn follow(context: &Context, child: &Child) -> Result<End> {
    let process = pid(child)?;
    match waitpid(process, None)? {
        WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
        other => bail!("expected the stop at exec, got {other:?}"),
    }
    if !mapped_files(process.as_raw())?.contains(&FileIdentity::of(&context.loader)?) {
        bail!("the loader under test is not mapped at exec");
    }
    ptrace::cont(process, None)?;
    let end = Instant::now() + LIMIT;
    loop {
        match waitpid(process, Some(WaitPidFlag::WNOHANG))? {
            WaitStatus::Exited(_, status) => return Ok(End::Exit(status)),
            WaitStatus::Signaled(_, signal, _) => {
                bail!("killed by {signal} without a stop before it")
            }
            WaitStatus::Stopped(_, signal) if fatal(signal) => {
                let end = blame(context, process, signal);
                ptrace::kill(process)?;
                waitpid(process, None)?;
                return end;
            }
            WaitStatus::Stopped(_, signal) => ptrace::cont(process, signal)?,
            _ if Instant::now() >= end => {
                nix::sys::signal::kill(process, Signal::SIGKILL)?;
                waitpid(process, None)?;
                return Ok(End::TimedOut);
            }
            _ => std::thread::sleep(Duration::from_micros(300)),
        }
    }
}

fn fatal(signal: Signal) -> bool {
    use Signal::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    matches!(signal, SIGABRT | SIGBUS | SIGFPE | SIGILL | SIGSEGV | SIGSYS | SIGTRAP)
}

/// Whose code was running: that which holds the instruction or, after a jump to nowhere, that which called it.
fn blame(context: &Context, process: Pid, signal: Signal) -> Result<End> {
    let registers = ptrace::getregs(process)?;
    let maps = fs::read_to_string(format!("/proc/{process}/maps"))?;
    let caller = ptrace::read(process, registers.rsp as ptrace::AddressType).map_or(0, |word| word as u64);
    let at = executable_file(&maps, registers.rip);
    let from = executable_file(&maps, caller);
    let loader = context.loader.to_string_lossy();
    let foreign = |path: &Option<String>| path.as_ref().is_some_and(|path| *path != loader);
    if foreign(&at) || (at.is_none() && foreign(&from)) {
        return Ok(End::SignalElsewhere);
    }
    let place = |path: Option<String>, address: u64| match path {
        Some(path) => format!("{path}+{:#x}", address - base(&maps, Path::new(&path))),
        None => format!("{address:#x}"),
    };
    let nowhere = at.is_none() && from.is_none();
    let told = format!("{signal} at {}, called from {}", place(at, registers.rip), place(from, caller));
    // The jump itself faults if its target is no possible address.
    let code = ptrace::read(process, registers.rip as ptrace::AddressType).map_or(0, |word| word as u64);
    if nowhere || indirect_jump(code) || (code & 0xff == RETURN && !canonical(caller)) {
        return Ok(End::Nowhere(told));
    }
    Ok(if signal == Signal::SIGABRT { End::Abort } else { End::SignalInLoader(told) })
}

/// The instruction `ret`: a binder may go on to the function that way.
const RETURN: u64 = 0xc3;

/// Whether an address is one at all: bits 47 to 63 are equal.
fn canonical(address: u64) -> bool {
    let high = address >> 47;
    high == 0 || high == 0x1_ffff
}

/// Whether the instruction is `jmp *register` or `jmp *memory`, first byte lowest (Intel SDM volume 2, JMP).
fn indirect_jump(code: u64) -> bool {
    code & 0xf8ff == 0xe0ff || code & 0xf8_ffff == 0xe0_ff41 || code & 0xffff == 0x25ff
}

/// The file of the executable mapping that holds `address`. A segment without bytes in the file has no file: the name then
/// is "anonymous". The loader itself makes no such memory.
fn executable_file(maps: &str, address: u64) -> Option<String> {
    maps.lines().find_map(|line| {
        let (start, end) = range(line)?;
        let mut fields = line.split_ascii_whitespace();
        let executable = fields.nth(1)?.contains('x');
        let path = fields.nth(3).unwrap_or("anonymous");
        (executable && (start..end).contains(&address)).then(|| path.to_owned())
    })
}

/// Start of the first mapping of a file.
fn base(maps: &str, path: &Path) -> u64 {
    let first = maps.lines().find(|line| line.ends_with(&*path.to_string_lossy()));
    first.and_then(range).map_or(0, |(start, _)| start)
}

fn range(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

/// Whether an end is one of the two that every file must come to: the program ran (it says `main`, or the library's own code
/// had begun), or an error was told, with status 127 (or 1, for a missing version) and nothing on standard output.
///
/// Once the library's own code runs it may do whatever the damaged file makes it do; all that is left to demand then is that
/// the loader does not read or write wild addresses itself.
pub fn acceptable(run: &Traced) -> Result<(), String> {
    let began = run.stdout.contains("init") || run.stdout.contains("main");
    let told = || format!("stdout: {:?}\nstderr: {:?}", run.stdout, run.stderr);
    let unexpected = |end: &str| Err(format!("expected success or one line of error\ngot      {end}\n{}", told()));
    match &run.end {
        End::Exit(0) if run.stdout.contains("main") => Ok(()),
        End::Exit(_) | End::TimedOut | End::Nowhere(_) | End::Abort if began => Ok(()),
        End::Exit(127 | 1) if explained(&run.stderr) && run.stdout.is_empty() => Ok(()),
        End::Exit(status) => unexpected(&format!("status {status}")),
        End::SignalElsewhere => Ok(()),
        End::Nowhere(place) | End::SignalInLoader(place) => unexpected(place),
        End::Abort => unexpected("SIGABRT"),
        End::TimedOut => unexpected(&format!("no end within {} s", LIMIT.as_secs())),
    }
}

/// One line besides the warnings about versions, or one for each of several missing libraries.
fn explained(text: &str) -> bool {
    let missing = |line: &str| line.ends_with(": cannot open shared object file: No such file or directory");
    let warning = |line: &&str| line.contains(": no version information available (required by ");
    let errors: String = text.lines().filter(|line| !warning(line)).map(|line| format!("{line}\n")).collect();
    one_line(&errors) || (errors.lines().count() > 1 && errors.lines().all(missing))
}

/// Exactly one line, which is not an assertion.
pub fn one_line(text: &str) -> bool {
    text.ends_with('\n')
        && text.lines().count() == 1
        && text.trim().len() > 10
        && !text.contains("Inconsistency detected")
}
