//! Suite `cpython`: CPython's own tests, from Debian's package of them, on a whole system on our loader (every process
//! that a test starts runs on it too). Each test of each module must end as it does under ld-linux in the same run.
//! Owns the list of modules and the running; what regrtest wrote is read in `results`. The longest modules are left to
//! `cargo xtask soak cpython`.

mod results;

use crate::harness::{Context, Report, Status};
use crate::process_tree::{self, Follow, Interpreter};
use crate::whole_system::{WholeSystem, plain};
use anyhow::{Context as _, bail};
use results::Results;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The modules, the longest first, so that none is left alone at the end.
const MODULES: &[&str] = &[
    "test_multiprocessing_fork",
    "test_signal",
    "test_ssl",
    "test_subprocess",
    "test_threading",
    "test_multiprocessing_main_handling",
    "test_decimal",
    "test_threadsignals",
    "test_json",
    "test_ctypes",
    "test_hashlib",
    "test_zlib",
    "test_locale",
    "test_thread",
    "test_threading_local",
    SQLITE,
];

/// Minutes each, alone.
const LONG_MODULES: &[&str] = &["test_multiprocessing_spawn", "test_multiprocessing_forkserver"];

/// CPython's own name for its tests of sqlite3, and ours for where Debian's package leaves them out.
const SQLITE: &str = "test_sqlite3";
const SQLITE_SUBSTITUTE: &str = "test_sqlite_module";

/// Modules that run at a time, both loaders counted: much of their time is sleep.
const AT_A_TIME: usize = 3;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    compare(context, report, MODULES)
}

/// Runs the modules that are too long for every day.
pub fn run_long(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    compare(context, report, LONG_MODULES)
}

/// Which loader a module runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum World {
    Reference,
    Ours,
}

/// A module that was run on a loader, and what came of it.
type Done<'t> = ((&'t str, World), Result<Results, String>);

fn compare(context: &Context, report: &mut Report, modules: &[&'static str]) -> anyhow::Result<()> {
    let place = Place::find(context)?;
    let names: Vec<&str> = modules.iter().map(|&module| place.name(module)).collect();
    let tasks: Vec<(&str, World)> =
        names.iter().flat_map(|&name| [(name, World::Ours), (name, World::Reference)]).collect();
    let done = place.run_all(&tasks);
    for name in names {
        let of = |world| done.iter().find(|(task, _)| *task == (name, world)).map(|(_, result)| result);
        let result = match (of(World::Ours), of(World::Reference)) {
            (Some(Ok(ours)), Some(Ok(reference))) => place.judge(report, name, ours, reference),
            (ours, reference) => Err(format!("ours {ours:?}\nunder ld-linux {reference:?}")),
        };
        report.check(format!("{name} as under ld-linux"), result);
    }
    Ok(())
}

/// The interpreter with the tests, and where runs happen.
struct Place<'a> {
    context: &'a Context,
    system: WholeSystem,
    python: PathBuf,
    own_tests: PathBuf,
    has_sqlite: bool,
}

impl<'a> Place<'a> {
    fn find(context: &'a Context) -> anyhow::Result<Self> {
        let versions = (11..20).rev().map(|minor| format!("python3.{minor}"));
        let found = versions.into_iter().find_map(|version| {
            let tests = Path::new("/usr/lib").join(&version).join("test");
            let python = Path::new("/usr/bin").join(version);
            (python.exists() && tests.join("test_threading.py").exists()).then_some((python, tests))
        });
        let Some((python, tests)) = found else {
            bail!(
                "no /usr/lib/python3.*/test/test_threading.py (Debian package libpython3.11-testsuite, or of another version)"
            );
        };
        // Copied, because Python writes compiled code beside a module.
        let own_tests = context.work.join("own");
        fs::create_dir(&own_tests)?;
        let file = format!("{SQLITE_SUBSTITUTE}.py");
        fs::copy(context.programs.join("cpython").join(&file), own_tests.join(&file))?;
        let has_sqlite = tests.join(SQLITE).exists();
        Ok(Self { context, system: WholeSystem::prepare(context)?, python, own_tests, has_sqlite })
    }

    /// The module that is run for this one.
    fn name(&self, module: &'static str) -> &'static str {
        if module == SQLITE && !self.has_sqlite { SQLITE_SUBSTITUTE } else { module }
    }

    /// Runs all of them, some at a time.
    fn run_all<'t>(&self, tasks: &[(&'t str, World)]) -> Vec<Done<'t>> {
        let waiting = Mutex::new(tasks.iter());
        let done = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..AT_A_TIME {
                scope.spawn(|| {
                    loop {
                        // A thread that panicked leaves the list as it was.
                        let next = waiting.lock().unwrap_or_else(|error| error.into_inner()).next();
                        let Some(&(name, world)) = next else { return };
                        let result = self.run(name, world, "first").map_err(|error| format!("{error:#}"));
                        done.lock().unwrap_or_else(|error| error.into_inner()).push(((name, world), result));
                    }
                });
            }
        });
        done.into_inner().unwrap_or_else(|error| error.into_inner())
    }

    /// One module once.
    fn run(&self, name: &str, world: World, round: &str) -> anyhow::Result<Results> {
        let directory = self.context.work.join(format!("{name}-{world:?}-{round}"));
        fs::create_dir(&directory)?;
        let written = directory.join("results.xml");
        let mut command = match world {
            World::Reference => plain(&self.python),
            World::Ours => self.system.command(&self.python)?,
        };
        for (variable, _) in std::env::vars_os() {
            if variable.as_encoded_bytes().starts_with(b"PYTHON") {
                command.env_remove(variable);
            }
        }
        command.current_dir(&directory).env("TMPDIR", &directory).args(["-m", "test", "--junit-xml"]).arg(&written);
        if name == SQLITE_SUBSTITUTE {
            command.arg("--testdir").arg(&self.own_tests);
        }
        command.arg(name);
        let output = directory.join("output");
        let tree = process_tree::run(&mut command, &self.system, &output, Follow::First, 600)?;
        let want = match world {
            World::Reference => Interpreter::Reference,
            World::Ours => Interpreter::Ours,
        };
        if tree.started.first().map(|started| started.interpreter) != Some(want) {
            bail!("python runs on the wrong loader: {:?}", tree.started);
        }
        // Exit status 2 is a failed test (regrtest), about which the results say more.
        if !matches!(tree.outcome.status, Status::Exit(0 | 2)) {
            bail!("{}", tree.outcome.describe());
        }
        let text = fs::read_to_string(&written).with_context(|| tree.outcome.describe())?;
        Results::read(&text).with_context(|| tree.outcome.describe())
    }

    /// Compares; where they differ, once more and each alone: some tests measure time, and several ran at once.
    fn judge(&self, report: &mut Report, name: &str, ours: &Results, reference: &Results) -> Result<(), String> {
        let mut difference = ours.difference(reference);
        let (mut ours, mut reference) = (ours.clone(), reference.clone());
        if let Some(first) = difference {
            let first: Vec<&str> = first.lines().take(5).collect();
            report.note(format!("{name} differed once, run again alone: {}", first.join("; ")));
            let again = |world| self.run(name, world, "again").map_err(|error| format!("{error:#}"));
            (reference, ours) = (again(World::Reference)?, again(World::Ours)?);
            difference = ours.difference(&reference);
        }
        report.note(format!("{name}: {ours}; under ld-linux {reference}"));
        if ours.run() == 0 {
            return Err("no test ran".to_owned());
        }
        difference.map_or(Ok(()), Err)
    }
}
