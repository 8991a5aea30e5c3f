//! A program made ready to be started by either loader: two copies of its file that differ in the PT_INTERP string alone, in
//! directories with names of equal length that look like the original's, and what both are given. Owns the copies; that each
//! really runs on its loader is shown once, by the harness, before anything is measured.

use super::programs::{Origin, PROGRAMS, Program};
use super::root::Root;
use crate::artifact;
use anyhow::{Context as _, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use rtld_suites::harness::{Build, Context, Run, Way, copy_with_interpreter, environment};
use rtld_suites::synthetic;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// One program, ready.
pub struct Staged {
    /// Its row.
    pub program: &'static Program,
    /// The original file.
    pub file: PathBuf,
    /// The copy that our loader starts.
    pub ours: PathBuf,
    /// The copy that ld-linux starts.
    pub theirs: PathBuf,
    /// The library whose initialiser ends the process.
    pub ending: PathBuf,
}

/// What became of the rows that were not measured.
#[derive(Default)]
pub struct Rest {
    /// Rows that cannot be measured here, and why.
    unmeasured: Vec<(&'static str, String)>,
    /// Rows whose program did not run as it must.
    failed: usize,
}

impl Rest {
    /// Says what was not measured; whether everything else ran.
    pub fn tell(&self) -> bool {
        for (name, why) in &self.unmeasured {
            println!("not measured: {name}: {why}");
        }
        self.failed == 0
    }

    fn lacks(&mut self, program: &'static Program) {
        let package = if let Origin::File(_, package) = program.origin { package } else { "" };
        self.unmeasured.push((program.name, format!("not installed (package {package}; --install fetches it)")));
    }

    fn did(&mut self, program: &'static Program, result: anyhow::Result<()>) {
        if let Err(error) = result {
            println!("{:13} did not run: {error:#}", program.name);
            self.failed += 1;
        }
    }
}

/// Calls `act` for every row that `wanted` chooses (of those named in `only`, if any are), where this machine or the private
/// root has its program. A row whose program or `act` fails is told and counted.
pub fn each(
    context: &Context,
    wanted: fn(&Program) -> bool,
    only: &[String],
    mut act: impl FnMut(&Staged) -> anyhow::Result<()> + Send,
) -> anyhow::Result<Rest> {
    let ending = ending(context)?;
    let mut later = Vec::new();
    let mut rest = Rest::default();
    let is_named = |program: &&Program| only.is_empty() || only.iter().any(|name| name == program.name);
    for program in PROGRAMS.iter().filter(|program| wanted(program)).filter(is_named) {
        match file_of(context, program)? {
            Some(file) => rest.did(program, stage(context, program, &file, &ending).and_then(|staged| act(&staged))),
            None => later.push(program),
        }
    }
    if later.is_empty() {
        return Ok(rest);
    }
    let Some(root) = Root::existing() else {
        later.into_iter().for_each(|program| rest.lacks(program));
        return Ok(rest);
    };
    root.inside(|| {
        for program in later {
            match file_of(context, program)? {
                Some(file) => {
                    rest.did(program, stage(context, program, &file, &ending).and_then(|staged| act(&staged)));
                }
                None => rest.lacks(program),
            }
        }
        Ok(rest)
    })
}

/// The library whose initialiser ends the process.
pub fn ending(context: &Context) -> anyhow::Result<PathBuf> {
    let build = Build::new("bench/startexit.c").shared();
    build.flags(&["-O2", "-nostdlib", "-Wl,-z,initfirst"]).build(context)
}

/// Where sets and the private root stay between runs.
pub fn store() -> anyhow::Result<PathBuf> {
    let directory = artifact::target_directory().join("bench");
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    Ok(directory.canonicalize()?)
}

/// The program's file, if it is there.
fn file_of(context: &Context, program: &Program) -> anyhow::Result<Option<PathBuf>> {
    Ok(match program.origin {
        Origin::File(path, _) => Path::new(path).canonicalize().ok(),
        Origin::Empty => Some(Build::new("bench/empty.c").flag("-O1").build(context)?),
        Origin::Synthetic(shape) => Some(synthetic::build(&store()?.join("synthetic"), shape)?.program),
    })
}

fn stage(context: &Context, program: &'static Program, file: &Path, ending: &Path) -> anyhow::Result<Staged> {
    // Names of equal length: the path lies on the program's stack.
    let theirs = place(context, program.name, file, "theirs")?;
    let ours = place(context, program.name, file, "our-ld")?;
    fs::copy(file, &theirs)?;
    copy_with_interpreter(file, &ours, &context.loader)?;
    let staged = Staged { program, file: file.to_owned(), ours, theirs, ending: ending.to_owned() };
    for way in [Way::Interpreter, Way::Reference] {
        staged.run(way).output(context)?.succeeded().map_err(anyhow::Error::msg)?;
    }
    Ok(staged)
}

/// Where a copy lies: in a directory that has the original's libraries beside it and `../lib`, for programs that look for
/// them from `$ORIGIN`.
fn place(context: &Context, name: &str, file: &Path, who: &str) -> anyhow::Result<PathBuf> {
    let directory = context.work.join(who).join(name.replace(' ', "-"));
    let bin = directory.join("bin");
    fs::create_dir_all(&bin)?;
    let original = file.parent().context("a program lies in a directory")?;
    let library = original.parent().context("a program's directory lies in one")?.join("lib");
    if library.is_dir() {
        symlink(&library, directory.join("lib"))?;
    }
    for entry in fs::read_dir(original)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().windows(3).any(|part| part == b".so") {
            symlink(entry.path(), bin.join(entry.file_name()))?;
        }
    }
    Ok(bin.join(file.file_name().context("a program has a name")?))
}

impl Staged {
    /// The command, as a person would type it.
    pub fn line(&self) -> String {
        format!("{} {}", self.file.display(), self.program.arguments.join(" "))
    }

    /// A run to the first initialiser, by the harness.
    pub fn run(&self, way: Way) -> Run {
        let copy = if way == Way::Reference { &self.theirs } else { &self.ours };
        let run = Run::new(copy).way(way).argument_zero(&self.file).args(self.program.arguments);
        let run = self.program.environment.iter().fold(run, |run, (name, value)| run.env(name, value));
        run.env("LD_PRELOAD", &self.ending)
    }

    /// One start under our loader or ld-linux.
    pub fn time(&self, ours: bool) -> anyhow::Result<Taken> {
        let copy = if ours { &self.ours } else { &self.theirs };
        let mut command = command(copy, &self.ending);
        command.arg0(&self.file).args(self.program.arguments).envs(self.program.environment.iter().copied());
        time(&mut command)
    }
}

/// A command that ends in the first initialiser. Both loaders' processes get the same environment.
pub fn command(program: &Path, ending: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(environment()).env("LD_FALLBACK", "never").env("LD_PRELOAD", ending);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// What one start took, microseconds.
#[derive(Clone, Copy, Default)]
pub struct Taken {
    /// Wall time from before vfork to after wait.
    pub wall: f64,
    /// Processor time of the process, which others on the machine do not add to.
    pub processor: f64,
}

/// One start to its end. `Command` without a hook before exec uses posix_spawn, which is vfork in glibc.
pub fn time(command: &mut Command) -> anyhow::Result<Taken> {
    let before = processor_time()?;
    let start = Instant::now();
    let status = command.spawn().with_context(|| format!("{command:?}"))?.wait()?;
    let wall = start.elapsed().as_secs_f64() * 1e6;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(Taken { wall, processor: processor_time()? - before })
}

/// Of all children that have ended, microseconds.
fn processor_time() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64)
}
