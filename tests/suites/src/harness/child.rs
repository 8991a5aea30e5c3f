//! A traced child from its exec stop to its end. At that stop the kernel has mapped program and interpreter and nothing of
//! either has run; there `/proc/PID/maps` decides, by device and inode, whether the run shows anything. Time limits guard
//! against hanging only.

use super::{Context, FileIdentity, Status, Way, mapped_files};
use anyhow::{Context as _, bail};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io::Read;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Looks at a process that is stopped in its exit.
pub(super) type Inspect<'a> = &'a mut dyn FnMut(i32) -> anyhow::Result<()>;

/// What a child must show, and for how long it may run.
pub(super) struct Traced<'a> {
    pub(super) context: &'a Context,
    pub(super) way: Way,
    pub(super) limit: Duration,
}

/// How a child ended and what it wrote.
pub(super) struct Ended {
    pub(super) status: Status,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Traced<'_> {
    /// Takes `child`, which called PTRACE_TRACEME and setsid before exec, to its end. After an error it is gone too.
    pub(super) fn finish(&self, child: &mut Child, at_exit: Option<Inspect<'_>>) -> anyhow::Result<Ended> {
        let process = Pid::from_raw(i32::try_from(child.id())?);
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let status = self.pass_exec_stop(process, at_exit.is_some()).and_then(|()| self.wait(child, process, at_exit));
        let status = status.inspect_err(|_| {
            // The process may be gone already, and only its group may be left.
            let _ = killpg(process, Signal::SIGKILL);
            let _ = child.kill();
            let _ = child.wait();
        })?;
        // What a dead program left running holds the pipes open: it gets a moment, then ends with the program.
        let grace = if status == Status::TimedOut { Duration::ZERO } else { Duration::from_secs(5) };
        let stdout = take_all(&stdout, process, grace)?;
        let stderr = take_all(&stderr, process, grace)?;
        Ok(Ended { status, stdout, stderr })
    }

    /// Waits for the exec stop, asserts what is mapped, and lets the child go, traced on only if its exit shall stop.
    fn pass_exec_stop(&self, process: Pid, stop_at_exit: bool) -> anyhow::Result<()> {
        match waitpid(process, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
            other => bail!("expected the stop at exec, got {other:?}"),
        }
        assert_interpreter(self.context, process.as_raw(), self.way)?;
        if stop_at_exit {
            ptrace::setoptions(process, ptrace::Options::PTRACE_O_TRACEEXIT)?;
            ptrace::cont(process, None)?;
        } else {
            ptrace::detach(process, None)?;
        }
        Ok(())
    }

    /// Waits for the end; past the limit the whole process group is killed.
    fn wait(&self, child: &mut Child, process: Pid, mut at_exit: Option<Inspect<'_>>) -> anyhow::Result<Status> {
        let end = Instant::now() + self.limit;
        let mut pause = Duration::from_micros(200);
        loop {
            match waitpid(process, Some(WaitPidFlag::WNOHANG))? {
                WaitStatus::Exited(_, status) => return Ok(Status::Exit(status)),
                WaitStatus::Signaled(_, signal, _) => return Ok(Status::Signal(signal as i32)),
                WaitStatus::PtraceEvent(..) => {
                    if let Some(inspect) = at_exit.take() {
                        inspect(process.as_raw())?;
                    }
                    ptrace::detach(process, None)?;
                }
                WaitStatus::Stopped(_, signal) => ptrace::cont(process, signal)?,
                _ => {}
            }
            if Instant::now() >= end {
                let _ = killpg(process, Signal::SIGKILL);
                let _ = child.kill();
                while !matches!(waitpid(process, None)?, WaitStatus::Exited(..) | WaitStatus::Signaled(..)) {
                    ptrace::cont(process, None)?;
                }
                return Ok(Status::TimedOut);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

/// Whether the files mapped at the exec stop are those that this way of starting must show.
fn assert_interpreter(context: &Context, process: i32, way: Way) -> anyhow::Result<()> {
    let mapped = mapped_files(process)?;
    let ours = mapped.contains(&FileIdentity::of(&context.loader)?);
    let theirs = mapped.contains(&FileIdentity::of(&context.reference)?);
    match way {
        Way::Direct | Way::Interpreter if !ours => {
            bail!("the loader under test is not mapped at exec ({way:?})")
        }
        Way::Direct | Way::Interpreter if theirs => bail!("ld-linux is the interpreter ({way:?})"),
        Way::Reference if ours => {
            bail!("the loader under test is mapped in a run that shall show ld-linux")
        }
        _ => Ok(()),
    }
}

/// Reads a pipe to its end in a thread of its own.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A pipe cannot fail but by our own mistake; what was read up to then is what the check will see.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

fn take_all(pipe: &Receiver<Vec<u8>>, process: Pid, grace: Duration) -> anyhow::Result<Vec<u8>> {
    if let Ok(bytes) = pipe.recv_timeout(grace) {
        return Ok(bytes);
    }
    let _ = killpg(process, Signal::SIGKILL);
    pipe.recv_timeout(Duration::from_secs(10)).context("something outside the program's session holds its output open")
}
