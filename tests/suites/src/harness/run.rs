//! Running a program on either loader, with proof of which one it was. The child is traced up to its exec stop, where the
//! kernel has mapped program and interpreter and nothing of either has run; there `/proc/PID/maps` decides, by device and
//! inode, whether this run shows anything. Owns the environment that children get.

use super::{Context, FileIdentity, copy_with_interpreter, interpreter_of, mapped_files};
use anyhow::{Context as _, bail};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How the program is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `LOADER PROGRAM ARGUMENTS`.
    Direct,
    /// By the kernel, with our loader as PT_INTERP: in a copy of the program, or in the program itself if it was linked so.
    Interpreter,
    /// By the kernel as it is, with ld-linux.
    Reference,
}

/// When functions are bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bind {
    /// `LD_BIND_NOW` unset.
    Lazy,
    /// `LD_BIND_NOW=1`.
    Now,
}

/// The "four ways each" of our loader.
pub const WAYS: [(Way, Bind); 4] = [
    (Way::Direct, Bind::Lazy),
    (Way::Direct, Bind::Now),
    (Way::Interpreter, Bind::Lazy),
    (Way::Interpreter, Bind::Now),
];

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// By exit, with this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It ran longer than the limit and was killed.
    TimedOut,
}

/// What a run left.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Everything written to standard output.
    pub stdout: Vec<u8>,
    /// Everything written to standard error.
    pub stderr: Vec<u8>,
    /// The command line, for reports.
    pub command: String,
}

impl Outcome {
    /// Standard output as text, ill-formed bytes replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text, ill-formed bytes replaced.
    pub fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Status, both outputs and the command line, for a failing check.
    pub fn describe(&self) -> String {
        format!(
            "{:?}\nstdout: {}\nstderr: {}\ncommand: {}",
            self.status,
            excerpt(&self.stdout),
            excerpt(&self.stderr),
            self.command
        )
    }

    /// Whether status and both outputs are those of `want`; a failure says where they differ.
    pub fn same_as(&self, want: &Self) -> Result<(), String> {
        if self.status == want.status && self.stdout == want.stdout && self.stderr == want.stderr {
            return Ok(());
        }
        Err(format!(
            "expected {}\ngot      {}",
            want.describe(),
            self.describe()
        ))
    }

    /// Whether it ended by exit 0; a failure describes it.
    pub fn succeeded(&self) -> Result<(), String> {
        if self.status == Status::Exit(0) {
            Ok(())
        } else {
            Err(format!("expected Exit(0)\ngot      {}", self.describe()))
        }
    }
}

/// At most 2000 characters of an output.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut short: String = text.trim_end().chars().take(2000).collect();
    if short.len() < text.trim_end().len() {
        short.push_str(" ...");
    }
    short
}

/// One run of a program.
#[derive(Debug, Clone)]
pub struct Run {
    program: PathBuf,
    way: Way,
    bind: Bind,
    arguments: Vec<OsString>,
    argument_zero: Option<OsString>,
    loader_options: Vec<OsString>,
    environment: Vec<(OsString, Option<OsString>)>,
    clear: bool,
    directory: Option<PathBuf>,
    stdin: Option<Vec<u8>>,
    limit: Duration,
    user: Option<(u32, u32)>,
    copy: Option<PathBuf>,
}

impl Run {
    /// A run of `program`, an absolute path or one relative to `directory`: directly, lazily, no arguments.
    pub fn new(program: impl AsRef<Path>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            way: Way::Direct,
            bind: Bind::Lazy,
            arguments: Vec::new(),
            argument_zero: None,
            loader_options: Vec::new(),
            environment: Vec::new(),
            clear: false,
            directory: None,
            stdin: None,
            limit: Duration::from_secs(60),
            user: None,
            copy: None,
        }
    }

    /// How it is started.
    pub fn way(mut self, way: Way) -> Self {
        self.way = way;
        self
    }

    /// When functions are bound.
    pub fn bind(mut self, bind: Bind) -> Self {
        self.bind = bind;
        self
    }

    /// More arguments.
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, arguments: I) -> Self {
        self.arguments.extend(
            arguments
                .into_iter()
                .map(|argument| argument.as_ref().to_owned()),
        );
        self
    }

    /// argv[0]: by the kernel when it starts the program, by `--argv0` when the loader does.
    pub fn argument_zero(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.argument_zero = Some(argument.as_ref().to_owned());
        self
    }

    /// More options of the loader, direct only.
    pub fn loader_options<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(
        mut self,
        options: I,
    ) -> Self {
        self.loader_options
            .extend(options.into_iter().map(|option| option.as_ref().to_owned()));
        self
    }

    /// Sets one variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Starts from an empty environment; `LD_FALLBACK` and `LD_BIND_NOW` are set all the same where they belong.
    pub fn env_clear(mut self) -> Self {
        self.clear = true;
        self
    }

    /// Removes one variable.
    pub fn unset(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), None));
        self
    }

    /// Working directory; the suite's own unless said.
    pub fn directory(mut self, path: impl AsRef<Path>) -> Self {
        self.directory = Some(path.as_ref().to_owned());
        self
    }

    /// Standard input; `/dev/null` unless said.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// The time after which the program counts as hanging, in seconds.
    pub fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Runs as this user and group, without supplementary groups; needs root.
    pub fn user(mut self, user: u32, group: u32) -> Self {
        self.user = Some((user, group));
        self
    }

    /// Where `Way::Interpreter` puts its copy: for a program that finds its files beside itself. Unless said: beside the program
    /// as `NAME.rtld` if that is in the suite's work directory, else in a directory of its own under the same name.
    pub fn copy(mut self, path: impl AsRef<Path>) -> Self {
        self.copy = Some(path.as_ref().to_owned());
        self
    }

    /// Runs it to its end. An error means that the run shows nothing: it could not start, or the wrong interpreter was mapped.
    pub fn output(&self, context: &Context) -> anyhow::Result<Outcome> {
        let mut command = self.command(context)?;
        let line = command_line(&command, self.bind);
        let mut child = self.start(&mut command).with_context(|| line.clone())?;
        let process = Pid::from_raw(i32::try_from(child.id())?);
        if let Err(error) = self.pass_exec_stop(context, process) {
            // The group first, then the child itself: before setsid it is in no group of its own.
            let _ = killpg(process, Signal::SIGKILL);
            let _ = child.kill();
            let _ = child.wait();
            return Err(error.context(line));
        }
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let status = wait(&mut child, process, self.limit)?;
        // What a dead program left running holds the pipes open: it gets a moment, then ends with the program.
        let grace = if status == Status::TimedOut {
            Duration::ZERO
        } else {
            Duration::from_secs(5)
        };
        let stdout = finish(&stdout, process, grace)?;
        let stderr = finish(&stderr, process, grace)?;
        Ok(Outcome {
            status,
            stdout,
            stderr,
            command: line,
        })
    }

    /// The command without the tracing: for suites that need the process itself. The caller asserts the interpreter.
    pub fn command(&self, context: &Context) -> anyhow::Result<Command> {
        let directory = self
            .directory
            .clone()
            .unwrap_or_else(|| context.work.clone());
        let program = &self.program;
        if self.way != Way::Direct && !self.loader_options.is_empty() {
            bail!(
                "options of the loader need Way::Direct: {}",
                program.display()
            );
        }
        let mut command;
        match self.way {
            Way::Direct => {
                command = Command::new(&context.loader);
                command.args(&self.loader_options);
                if let Some(argument) = &self.argument_zero {
                    command.arg("--argv0").arg(argument);
                }
                command.arg(program);
            }
            Way::Interpreter => {
                command = Command::new(self.interpreted(context, &directory.join(program))?);
                command.arg0(self.argument_zero.as_deref().unwrap_or(program.as_os_str()));
            }
            Way::Reference => {
                command = Command::new(program);
                command.arg0(self.argument_zero.as_deref().unwrap_or(program.as_os_str()));
            }
        }
        command
            .args(&self.arguments)
            .current_dir(directory)
            .env_clear();
        if !self.clear {
            command.envs(environment());
        }
        if self.way != Way::Reference {
            command.env("LD_FALLBACK", "never");
        }
        if self.bind == Bind::Now {
            command.env("LD_BIND_NOW", "1");
        }
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Ok(command)
    }

    /// The file to start for `Way::Interpreter`.
    fn interpreted(&self, context: &Context, program: &Path) -> anyhow::Result<PathBuf> {
        if interpreter_of(program)?.as_deref() == Some(&context.loader) {
            return Ok(program.to_owned());
        }
        let name = program.file_name().context("a program has a file name")?;
        let copy = match &self.copy {
            Some(path) => path.clone(),
            None if program.starts_with(&context.work) => {
                let mut name = name.to_owned();
                name.push(".rtld");
                program.with_file_name(name)
            }
            None => {
                let parent = program
                    .parent()
                    .map(|parent| parent.to_string_lossy().replace('/', "_"))
                    .unwrap_or_default();
                let directory = context.work.join("copies").join(parent);
                fs::create_dir_all(&directory)?;
                directory.join(name)
            }
        };
        copy_with_interpreter(program, &copy, &context.loader)?;
        Ok(copy)
    }

    fn start(&self, command: &mut Command) -> anyhow::Result<Child> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(match &self.stdin {
            None => Stdio::null(),
            Some(bytes) => input_file(bytes)?,
        });
        let user = self.user;
        let prepare = move || {
            // Before the change of user: a set-uid program keeps its privilege under a tracer only if that was privileged.
            ptrace::traceme()?;
            nix::unistd::setsid()?;
            if let Some((user, group)) = user {
                nix::unistd::setgroups(&[])?;
                nix::unistd::setgid(group.into())?;
                nix::unistd::setuid(user.into())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec `prepare` makes system calls only: no allocation, no lock.
        unsafe { command.pre_exec(prepare) };
        Ok(command.spawn()?)
    }

    /// Waits for the exec stop, asserts what is mapped, and lets the child go.
    fn pass_exec_stop(&self, context: &Context, process: Pid) -> anyhow::Result<()> {
        match waitpid(process, None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
            other => bail!("expected the stop at exec, got {other:?}"),
        }
        assert_interpreter(context, process.as_raw(), self.way)?;
        ptrace::detach(process, None)?;
        Ok(())
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

/// The environment children start from: the parent's less `LD_*` and `GLIBC_TUNABLES`.
pub fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os()
        .filter(|(name, _)| {
            !name.as_encoded_bytes().starts_with(b"LD_") && name != "GLIBC_TUNABLES"
        })
        .collect()
}

/// The command line as one would type it.
fn command_line(command: &Command, bind: Bind) -> String {
    let mut line = String::new();
    if bind == Bind::Now {
        line.push_str("LD_BIND_NOW=1 ");
    }
    line.push_str(&command.get_program().to_string_lossy());
    for argument in command.get_args() {
        line.push_str(&format!(" {:?}", argument.to_string_lossy()));
    }
    line
}

/// An unlinked file that holds `bytes`, open at its start.
fn input_file(bytes: &[u8]) -> anyhow::Result<Stdio> {
    use std::io::{Seek, Write};
    let (descriptor, path) = nix::unistd::mkstemp("/tmp/rtld-stdin.XXXXXX")?;
    fs::remove_file(path)?;
    let mut file = fs::File::from(descriptor);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
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

fn finish(pipe: &Receiver<Vec<u8>>, process: Pid, grace: Duration) -> anyhow::Result<Vec<u8>> {
    if let Ok(bytes) = pipe.recv_timeout(grace) {
        return Ok(bytes);
    }
    let _ = killpg(process, Signal::SIGKILL);
    pipe.recv_timeout(Duration::from_secs(10))
        .context("something outside the program's session holds its output open")
}

/// Waits for the end; past the limit the whole session's process group is killed.
fn wait(child: &mut Child, process: Pid, limit: Duration) -> anyhow::Result<Status> {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_micros(200);
    loop {
        match waitpid(process, Some(WaitPidFlag::WNOHANG))? {
            WaitStatus::Exited(_, status) => return Ok(Status::Exit(status)),
            WaitStatus::Signaled(_, signal, _) => return Ok(Status::Signal(signal as i32)),
            _ => {}
        }
        if Instant::now() >= end {
            let _ = killpg(process, Signal::SIGKILL);
            let _ = child.kill();
            waitpid(process, None)?;
            return Ok(Status::TimedOut);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
