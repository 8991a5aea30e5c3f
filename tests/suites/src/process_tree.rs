//! A command and every process it starts, traced with ptrace(2) to see which loader each of them was given: at every
//! exec stop /proc/PID/maps says, by device and inode, what the kernel mapped as the interpreter, before anything of it
//! has run. Owns the tracing; may not judge what was seen.

use crate::harness::{FileIdentity, Outcome, Status, mapped_files};
use crate::whole_system::WholeSystem;
use anyhow::{Context as _, anyhow, bail};
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;
use std::collections::HashSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// What the kernel mapped beside a program at its exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interpreter {
    /// The loader under test.
    Ours,
    /// ld-linux.
    Reference,
    /// Neither: a static program.
    Neither,
}

/// One successful exec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The program's file.
    pub program: PathBuf,
    /// What it was given.
    pub interpreter: Interpreter,
    /// Whether `LD_FALLBACK=never` was in its environment.
    pub no_fallback: bool,
}

/// What a tree of processes left.
#[derive(Debug)]
pub struct Tree {
    /// How its first process ended and what all of them wrote.
    pub outcome: Outcome,
    /// Every exec, in the order in which they were seen; the first process only unless all were to be followed.
    pub started: Vec<Started>,
}

/// How far the processes are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// All of them.
    All,
    /// The first one up to its exec.
    First,
}

/// Runs `command` to its end, or kills it after `limit` seconds. Its outputs are the files `stdout` and `stderr` made
/// in `scratch`, so that nobody waits for a background process that holds them open.
pub fn run(
    command: &mut Command,
    system: &WholeSystem,
    scratch: &Path,
    follow: Follow,
    limit: u64,
) -> anyhow::Result<Tree> {
    fs::create_dir_all(scratch)?;
    let (stdout, stderr) = (scratch.join("stdout"), scratch.join("stderr"));
    command.stdin(Stdio::null()).stdout(fs::File::create(&stdout)?).stderr(fs::File::create(&stderr)?);
    let prepare = || {
        ptrace::traceme()?;
        nix::unistd::setsid()?;
        Ok(())
    };
    // SAFETY: between fork and exec `prepare` makes system calls only: no allocation, no lock.
    unsafe { command.pre_exec(prepare) };
    let line = command_line(command);
    // A tracer is a thread: on its own, its waits see no other child, and what still runs at its end dies with it.
    let (status, started) = std::thread::scope(|scope| {
        let tracer = scope.spawn(|| trace(command, system, follow, Duration::from_secs(limit)));
        tracer.join().map_err(|_| anyhow!("the tracer panicked"))?
    })
    .with_context(|| line.clone())?;
    let outcome = Outcome { status, stdout: fs::read(&stdout)?, stderr: fs::read(&stderr)?, command: line };
    Ok(Tree { outcome, started })
}

/// Program, arguments and directory; the environment would be too long to read.
fn command_line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push_str(&format!(" {:?}", argument.to_string_lossy()));
    }
    if let Some(directory) = command.get_current_dir() {
        line.push_str(&format!(" (in {})", directory.display()));
    }
    line
}

/// Starts and follows; on the tracer's thread.
fn trace(
    command: &mut Command,
    system: &WholeSystem,
    follow: Follow,
    limit: Duration,
) -> anyhow::Result<(Status, Vec<Started>)> {
    let child = command.spawn().context(
        "cannot start (a private mount namespace needs root, or a kernel that lets users make user namespaces)",
    )?;
    let root = i32::try_from(child.id())?;
    let mut tracer = Tracer { root, known: HashSet::from([root]), started: Vec::new(), system };
    let (done, watch) = channel::<()>();
    let killed = std::thread::spawn(move || {
        let late = watch.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if late {
            // The command's session; whatever left it dies with the tracer.
            let _ = nix::sys::signal::killpg(Pid::from_raw(root), nix::sys::signal::Signal::SIGKILL);
        }
        late
    });
    let status = tracer.follow(follow);
    drop(done);
    let late = killed.join().map_err(|_| anyhow!("the watch panicked"))?;
    let status = status?;
    Ok((if late { Status::TimedOut } else { status }, tracer.started))
}

struct Tracer<'a> {
    root: i32,
    /// Processes and threads whose first stop was seen.
    known: HashSet<i32>,
    started: Vec<Started>,
    system: &'a WholeSystem,
}

impl Tracer<'_> {
    fn follow(&mut self, follow: Follow) -> anyhow::Result<Status> {
        let first = wait(self.root)?;
        if !libc::WIFSTOPPED(first.1) || libc::WSTOPSIG(first.1) != libc::SIGTRAP {
            bail!("expected the stop at exec, got wait status {:#x}", first.1);
        }
        self.record(self.root)?;
        let root = Pid::from_raw(self.root);
        if follow == Follow::First {
            ptrace::detach(root, None)?;
        } else {
            use ptrace::Options;
            let follow = Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK | Options::PTRACE_O_TRACECLONE;
            ptrace::setoptions(root, follow | Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_EXITKILL)?;
            proceed(self.root, 0)?;
        }
        loop {
            let (process, status) = wait(-1)?;
            if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                self.known.remove(&process);
                if process != self.root {
                    continue;
                }
                return Ok(if libc::WIFEXITED(status) {
                    Status::Exit(libc::WEXITSTATUS(status))
                } else {
                    Status::Signal(libc::WTERMSIG(status))
                });
            }
            let signal = libc::WSTOPSIG(status);
            let event = status >> 16;
            if event == libc::PTRACE_EVENT_EXEC {
                self.record(process)?;
            }
            // A new child stops once of itself; every other stop without an event is a signal on its way.
            let is_new = self.known.insert(process);
            let pass = if event != 0 || is_new && signal == libc::SIGSTOP { 0 } else { signal };
            proceed(process, pass)?;
        }
    }

    /// Notes what the kernel mapped; a process killed meanwhile leaves nothing to note.
    fn record(&mut self, process: i32) -> anyhow::Result<()> {
        let Ok(program) = fs::read_link(format!("/proc/{process}/exe")) else { return Ok(()) };
        let mapped = mapped_files(process)?;
        let has = |file: &FileIdentity| mapped.contains(file);
        let interpreter = match (has(&self.system.loader), has(&self.system.reference)) {
            (true, false) => Interpreter::Ours,
            (false, true) => Interpreter::Reference,
            (false, false) => Interpreter::Neither,
            (true, true) => bail!("both loaders are mapped at the exec of {}", program.display()),
        };
        let environment = fs::read(format!("/proc/{process}/environ"))?;
        let no_fallback = environment.split(|&byte| byte == 0).any(|entry| entry == b"LD_FALLBACK=never");
        self.started.push(Started { program, interpreter, no_fallback });
        Ok(())
    }
}

/// waitpid(2) for children of this thread, of every kind: the raw status, because signals of libc's own have no name in
/// `nix`.
fn wait(process: i32) -> anyhow::Result<(i32, i32)> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a local of the type waitpid stores.
        let got = unsafe { libc::waitpid(process, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        match Errno::result(got) {
            Ok(process) => return Ok((process, status)),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("waitpid"),
        }
    }
}

/// PTRACE_CONT with a raw signal number; a process that was killed meanwhile is no error.
fn proceed(process: i32, signal: i32) -> anyhow::Result<()> {
    // SAFETY: PTRACE_CONT reads no memory of ours; the address is ignored and the data is a number.
    let got = unsafe { libc::ptrace(libc::PTRACE_CONT, process, 0_usize, usize::try_from(signal)?) };
    match Errno::result(got) {
        Ok(_) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error).context("PTRACE_CONT"),
    }
}
