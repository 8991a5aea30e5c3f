//! One run of a program on either loader: what is started, with which arguments and environment. How the child is watched,
//! and the proof of which loader it ran on, lies in `child`. Owns the environment that children get.

use super::child::{Inspect, Traced};
use super::{Context, Outcome, copy_with_interpreter, interpreter_of};
use anyhow::{Context as _, bail};
use nix::sys::ptrace;
use nix::sys::signal::{SigHandler, Signal, signal};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// argv[0]: by the kernel when it starts the program, by `--argv0` when the loader does.
    pub fn argument_zero(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.argument_zero = Some(argument.as_ref().to_owned());
        self
    }

    /// More options of the loader, direct only.
    pub fn loader_options<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, options: I) -> Self {
        self.loader_options.extend(options.into_iter().map(|option| option.as_ref().to_owned()));
        self
    }

    /// Sets one variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Starts from an empty environment; `LD_FALLBACK` and `LD_BIND_NOW` are set all the same where they belong.
    pub fn env_clear(mut self) -> Self {
        self.clear = true;
        self
    }

    /// Runs in this back end. The patched kernel's is not asked for: the loader must choose it by itself.
    pub fn back_end(self, name: &str) -> Self {
        match name {
            "kernel" => self.unset(BACKEND),
            name => self.env(BACKEND, name),
        }
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
        self.run(context, None)
    }

    /// As `output`; the program is stopped once more when it exits, with its memory still mapped, and `inspect` gets its process id.
    pub fn output_inspected(
        &self,
        context: &Context,
        inspect: &mut dyn FnMut(i32) -> anyhow::Result<()>,
    ) -> anyhow::Result<Outcome> {
        self.run(context, Some(inspect))
    }

    fn run(&self, context: &Context, at_exit: Option<Inspect<'_>>) -> anyhow::Result<Outcome> {
        let mut command = self.command(context)?;
        let line = command_line(&command, self.bind);
        let mut child = self.start(&mut command).with_context(|| line.clone())?;
        let traced = Traced { context, way: self.way, limit: self.limit * context.place.patience() };
        let ended = traced.finish(&mut child, at_exit).with_context(|| line.clone())?;
        Ok(Outcome { status: ended.status, stdout: ended.stdout, stderr: ended.stderr, command: line })
    }

    /// The command without the tracing: for suites that need the process itself. The caller asserts the interpreter.
    pub fn command(&self, context: &Context) -> anyhow::Result<Command> {
        let directory = self.directory.clone().unwrap_or_else(|| context.work.clone());
        let program = &self.program;
        if self.way != Way::Direct && !self.loader_options.is_empty() {
            bail!("options of the loader need Way::Direct: {}", program.display());
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
        command.args(&self.arguments).current_dir(directory).env_clear();
        if !self.clear {
            command.envs(environment());
        }
        if self.way != Way::Reference {
            command.envs(always());
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
                let parent =
                    program.parent().map(|parent| parent.to_string_lossy().replace('/', "_")).unwrap_or_default();
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
            // nohup and shells that start us in the background have these ignored, which programs inherit.
            for number in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
                // SAFETY: the default is no handler.
                unsafe { signal(number, SigHandler::SigDfl) }?;
            }
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
}

/// The environment children start from: the parent's less `LD_*` and `GLIBC_TUNABLES`, with the back end that was asked for.
pub fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os()
        .filter(|(name, _)| !name.as_encoded_bytes().starts_with(b"LD_") && name != "GLIBC_TUNABLES")
        .chain(backend().map(|value| (BACKEND.into(), value.into())))
        .chain(lookup().map(|value| (LOOKUP.into(), value.into())))
        .collect()
}

/// What every program on our loader is given, whatever else it gets: no fallback, and the back end and the
/// lookup that were asked for.
pub fn always() -> Vec<(&'static str, String)> {
    let fallback = ("LD_FALLBACK", "never".to_owned());
    let backend = backend().map(|value| (BACKEND, value));
    std::iter::once(fallback).chain(backend).chain(lookup().map(|value| (LOOKUP, value))).collect()
}

/// The variable of the loader that chooses a back end.
const BACKEND: &str = "LD_SIGBLOCK";

/// The back end that this run of the suites asked for (`cargo xtask test --sigblock VALUE`).
pub fn backend() -> Option<String> {
    std::env::var("RTLD_SIGBLOCK").ok()
}

/// The variable of the loader that says how names are looked up.
pub const LOOKUP: &str = "LD_LOOKUP";

/// How names are looked up in this run of the suites, if that was asked for (`cargo xtask test --lookup MODE`).
pub fn lookup() -> Option<String> {
    std::env::var("RTLD_LOOKUP").ok()
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
