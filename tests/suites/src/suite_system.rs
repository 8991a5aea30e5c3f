//! Suite `system`: a whole system on our loader. In a private mount namespace where our file stands in for
//! ld-linux-x86-64.so.2, people's everyday tools build, clone and run; every process of every tree is shown to have
//! been started by our file, and what the tools print is what they print on the machine as it is, in the same run.

mod traced;

use crate::harness::{Context, Outcome, Report, Status};
use crate::process_tree::{self, Follow, Interpreter, Tree};
use crate::whole_system::{WholeSystem, plain};
use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One scenario: a shell script whose standard output must be that of the machine as it is.
pub struct Scenario {
    name: &'static str,
    /// Debian packages of the programs below.
    packages: &'static str,
    script: &'static str,
    /// File names of programs that must be among those started.
    programs: &'static [&'static str],
    /// Something that must be in the output, so that two empty ones are no agreement.
    prints: &'static str,
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "compile, link and run a C++ program",
        packages: "g++ binutils",
        script: "g++ -std=c++17 -O2 -pthread -o hello $PROGRAMS/hello.cpp && ./hello",
        programs: &["cc1plus", "x86_64-linux-gnu-as", "collect2", "x86_64-linux-gnu-ld.bfd", "hello"],
        prints: "caught: no word\none 1\ntwo 2\n",
    },
    Scenario {
        name: "cargo new, cargo run",
        packages: "a Rust toolchain",
        script: "cargo new --vcs none hello && cd hello && cargo run --offline",
        programs: &["cargo", "rustc", "hello"],
        prints: "Hello, world!\n",
    },
    Scenario {
        name: "javac, java",
        packages: "default-jdk-headless",
        script: "javac -d . $PROGRAMS/Hello.java && java Hello",
        programs: &["javac", "java"],
        prints: "sum is 338350\n",
    },
    Scenario {
        name: "perl",
        packages: "perl",
        script: "perl $PROGRAMS/hello.pl",
        programs: &["perl"],
        prints: "child 7, pipe through\n",
    },
    Scenario {
        name: "git clone",
        packages: "git",
        script: "git init -q one && cp $PROGRAMS/hello.pl one && git -C one add . && \
                 export GIT_AUTHOR_DATE='@0 +0000' && git -C one -c user.name=n -c user.email=e commit -q -m first && \
                 git clone -q --no-local one two && git -C two fsck --full && \
                 git -C two log --format='%s %ad' --date=unix && \
                 cmp one/hello.pl two/hello.pl && echo cloned",
        programs: &["git", "cmp"],
        prints: "first 0\ncloned\n",
    },
    Scenario {
        name: "sqlite3, openssl, curl",
        packages: "sqlite3 openssl curl",
        script: "sqlite3 :memory: 'select 1+2, sqlite_version(), round(sqrt(2), 6)' && openssl version -a && \
                 echo text | openssl enc -aes-128-cbc -K 00 -iv 00 2>/dev/null | openssl dgst -sha256 && \
                 curl --version && curl -s file://$PROGRAMS/hello.cpp",
        programs: &["sqlite3", "openssl", "curl"],
        prints: "int main()",
    },
];

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let system = WholeSystem::prepare(context)?;
    for scenario in SCENARIOS {
        if let Err(error) = play(context, report, &system, scenario) {
            report.check(scenario.name, Err(format!("{error:#}\n(Debian packages: {})", scenario.packages)));
        }
    }
    traced::run(context, report, &system)
}

/// One scenario on the machine as it is and on our system.
fn play(context: &Context, report: &mut Report, system: &WholeSystem, scenario: &Scenario) -> anyhow::Result<()> {
    let name = scenario.name;
    let want = start(context, system, scenario, World::Machine)?;
    if want.outcome.status != Status::Exit(0) || !want.outcome.text().contains(scenario.prints) {
        bail!("under ld-linux: {} (Debian packages: {})", want.outcome.describe(), scenario.packages);
    }
    // A tracer that sees nothing would find every process right.
    let reference = Seen::of(&want);
    report.check(
        format!("{name}: under ld-linux the programs are seen, none on our loader"),
        if reference.ours.is_empty() { reference.includes(scenario) } else { Err(format!("{:?}", reference.ours)) },
    );
    let got = start(context, system, scenario, World::Ours)?;
    report.check(format!("{name}: status and output are those under ld-linux"), same(&got.outcome, &want.outcome));
    let seen = Seen::of(&got);
    let processes = seen.ours.len();
    let result = if seen.others.is_empty() && processes > 0 {
        seen.includes(scenario)
    } else {
        Err(format!("{processes} on our loader, but {:?}", seen.others))
    };
    report.check(format!("{name}: each of its programs was started by our file"), result);
    report.check(
        format!("{name}: LD_FALLBACK=never in each environment"),
        match got.started.iter().find(|started| !started.no_fallback) {
            None => Ok(()),
            Some(started) => Err(started.program.display().to_string()),
        },
    );
    report.note(format!("{name}: {processes} programs started by our file, {} static", seen.without.len()));
    Ok(())
}

/// Where a scenario runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// The machine as it is.
    Machine,
    /// The namespace.
    Ours,
}

/// A command in a world of its own directory, with what scenarios know: `PROGRAMS`, no network for cargo.
pub fn prepare(
    context: &Context,
    system: &WholeSystem,
    program: &str,
    place: &str,
    world: World,
) -> anyhow::Result<(Command, PathBuf)> {
    let directory = context.work.join(format!("{}-{world:?}", place.replace([' ', ','], "-")));
    fs::create_dir(&directory).with_context(|| directory.display().to_string())?;
    let mut command = match world {
        World::Machine => plain(program),
        World::Ours => system.command(program)?,
    };
    command.env("PROGRAMS", context.programs.join("system")).env("CARGO_NET_OFFLINE", "true");
    command.env("PWD", &directory).current_dir(&directory);
    Ok((command, directory))
}

fn start(context: &Context, system: &WholeSystem, scenario: &Scenario, world: World) -> anyhow::Result<Tree> {
    let (mut command, directory) = prepare(context, system, "/bin/sh", scenario.name, world)?;
    command.args(["-c", scenario.script]);
    process_tree::run(&mut command, system, &directory.with_extension("output"), Follow::All, 180)
}

/// Status and standard output; compilers and cargo write times and paths to standard error.
fn same(got: &Outcome, want: &Outcome) -> Result<(), String> {
    if got.status == want.status && got.stdout == want.stdout {
        return Ok(());
    }
    Err(format!("expected {}\ngot      {}", want.describe(), got.describe()))
}

/// The programs of a tree by what started them.
struct Seen {
    ours: Vec<PathBuf>,
    others: Vec<PathBuf>,
    without: Vec<PathBuf>,
    all: Vec<PathBuf>,
}

impl Seen {
    fn of(tree: &Tree) -> Self {
        let with = |interpreter: Interpreter| {
            let chosen = tree.started.iter().filter(move |started| started.interpreter == interpreter);
            chosen.map(|started| started.program.clone()).collect()
        };
        Self {
            ours: with(Interpreter::Ours),
            others: with(Interpreter::Reference),
            without: with(Interpreter::Neither),
            all: tree.started.iter().map(|started| started.program.clone()).collect(),
        }
    }

    /// Whether the scenario's programs are among those seen.
    fn includes(&self, scenario: &Scenario) -> Result<(), String> {
        let missing = scenario.programs.iter().find(|name| !self.all.iter().any(|path| named(path, name)));
        missing.map_or(Ok(()), |name| Err(format!("{name} was not seen in {:?}", self.all)))
    }
}

fn named(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name))
}
