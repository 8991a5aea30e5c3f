//! `cargo xtask`: what cargo cannot do by itself. Owns the command line and its exit codes: 0 all right, 1 something failed,
//! 2 cannot run. The work lies in one file a command.

mod artifact;
mod bench;
mod kernel;
mod mutants;
mod suites;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Builds, runs, tests and measures ld-elf.so.1.
#[derive(Parser)]
#[command(name = "cargo xtask", version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build target/release/ld-elf.so.1 and target/release/rtld
    Build,
    /// Build, then run a program on the loader (python3 printing hello unless given)
    Run {
        /// The program and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        program: Vec<String>,
    },
    /// Build, then run the unit tests and the suites (or only the suites named)
    Test {
        /// Suites by name; `unit` is the unit tests
        suites: Vec<String>,
        /// Test this loader in place of the artifact
        #[arg(long, value_name = "PATH")]
        loader: Option<PathBuf>,
        /// Run the programs with this LD_SIGBLOCK, which must be had
        #[arg(long, value_name = "BACK END")]
        sigblock: Option<String>,
        /// Run the programs with this LD_LOOKUP: scope or table
        #[arg(long, value_name = "MODE")]
        lookup: Option<String>,
        /// List the suites and stop
        #[arg(long)]
        list: bool,
    },
    /// Build, then measure
    Bench {
        #[command(subcommand)]
        bench: Bench,
    },
    /// Build, then run the suites of many minutes (or only those named)
    Soak {
        /// Suites by name
        suites: Vec<String>,
        /// Test this loader in place of the artifact
        #[arg(long, value_name = "PATH")]
        loader: Option<PathBuf>,
        /// How long to soak, where a suite counts in seconds
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        seconds: Option<u64>,
        /// List the suites and stop
        #[arg(long)]
        list: bool,
    },
    /// Break the product on purpose, in a copy, and show that a named test catches each breakage
    Mutants {
        /// The set: `kernel`, or a directory of tests/mutants
        set: String,
        /// Mutants by name; all unless given
        names: Vec<String>,
        /// List the mutants and stop
        #[arg(long)]
        list: bool,
    },
    /// The kernel patch: build patched kernels, test them in QEMU
    Kernel {
        #[command(subcommand)]
        kernel: Kernel,
    },
    /// Not there yet: comes with a later issue
    Compat,
    /// Not there yet: comes with a later issue
    Install,
}

#[derive(Subcommand)]
enum Kernel {
    /// Build the patched kernel unless it is there, boot it, run suites on it
    Test(kernel::Settings),
    /// In the guest of suite loader: run suites there
    #[command(hide = true)]
    Guest {
        /// The directory with the loader and the programs
        directory: PathBuf,
        /// Suites by name; all unless given
        suites: Vec<String>,
    },
    /// Show that without its option the patch changes no object code
    Off {
        /// In whose kernel
        #[arg(long, value_enum, default_value_t = kernel::Debian::Bookworm)]
        debian: kernel::Debian,
    },
    /// Print the whole patch
    Patch {
        /// For whose kernel
        #[arg(long, value_enum, default_value_t = kernel::Debian::Bookworm)]
        debian: kernel::Debian,
    },
}

#[derive(Subcommand)]
enum Bench {
    /// Time from exec to the first initialiser of small, large and synthetic programs, under either loader
    Startup(Measure<31>),
    /// Time of a start against the number of libraries and of symbols, ours, ld-linux and musl; draws a plot
    Growth(Measure<15>),
    /// Instructions of a start of the large programs and the synthetic sets, under either loader
    Instructions(Measure<1>),
    /// Peak Rss and Pss of a start, under either loader
    Memory(Measure<5>),
    /// Time of dlopen and dlclose of 1 library, of a closure of 100 and of 300 kept open, under either loader
    Dlopen(Measure<20>),
    /// What a section costs in each back end: alone, around signals, exceptions and lazy binding, ld-linux beside it
    Sigblock(Measure<30>),
}

/// What every bench is asked; `ROUNDS` is its default.
#[derive(clap::Args)]
struct Measure<const ROUNDS: u32> {
    /// Alternating rounds
    #[arg(long, default_value_t = ROUNDS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Write the figures here too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Fail if a program does not run on our loader, or if what the bench is to show does not hold
    #[arg(long)]
    check: bool,
    /// Measure this loader in place of the artifact
    #[arg(long, value_name = "PATH")]
    loader: Option<PathBuf>,
    /// Fetch the large programs and musl into target/bench/root first (startup, growth, instructions, memory)
    #[arg(long)]
    install: bool,
    /// Measure only this row of startup, instructions or memory (more than once for more)
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,
}

impl<const ROUNDS: u32> Measure<ROUNDS> {
    fn run(&self, bench: fn(&bench::Settings<'_>) -> anyhow::Result<bool>) -> anyhow::Result<bool> {
        bench(&bench::Settings {
            rounds: usize::try_from(self.rounds)?,
            json: self.json.as_deref(),
            check: self.check,
            loader: self.loader.as_deref(),
            only: &self.only,
            install: self.install,
        })
    }
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Task::Build => artifact::build().map(|_| true),
        Task::Run { program } => artifact::run(program),
        Task::Test { list: true, .. } => {
            suites::list();
            Ok(true)
        }
        Task::Test { suites, loader, sigblock, lookup, list: false } => {
            if let Some(backend) = sigblock {
                // SAFETY: this process has one thread yet.
                unsafe { std::env::set_var("RTLD_SIGBLOCK", backend) };
            }
            if let Some(mode) = lookup {
                // SAFETY: this process has one thread yet.
                unsafe { std::env::set_var("RTLD_LOOKUP", mode) };
            }
            suites::run(&suites, loader.as_deref())
        }
        Task::Bench { bench: Bench::Startup(measure) } => measure.run(bench::startup),
        Task::Bench { bench: Bench::Growth(measure) } => measure.run(bench::growth),
        Task::Bench { bench: Bench::Instructions(measure) } => measure.run(bench::instructions),
        Task::Bench { bench: Bench::Memory(measure) } => measure.run(bench::memory),
        Task::Bench { bench: Bench::Dlopen(measure) } => measure.run(bench::dlopen),
        Task::Bench { bench: Bench::Sigblock(measure) } => measure.run(bench::sigblock),
        Task::Soak { list: true, .. } => {
            suites::list_soaks();
            Ok(true)
        }
        Task::Soak { suites, loader, seconds, list: false } => suites::soak(&suites, loader.as_deref(), seconds),
        Task::Mutants { set, list: true, .. } if set == "kernel" => {
            kernel::list_mutants();
            Ok(true)
        }
        Task::Mutants { set, names, list: false } if set == "kernel" => kernel::mutants(&names),
        Task::Mutants { set, list: true, .. } => mutants::list(&set).map(|()| true),
        Task::Mutants { set, names, list: false } => mutants::run(&set, &names),
        Task::Kernel { kernel: Kernel::Test(settings) } => kernel::test(&settings),
        Task::Kernel { kernel: Kernel::Guest { directory, suites } } => kernel::guest(&directory, &suites),
        Task::Kernel { kernel: Kernel::Off { debian } } => kernel::off(debian),
        Task::Kernel { kernel: Kernel::Patch { debian } } => kernel::patch(debian).map(|()| true),
        Task::Compat => return later("compat"),
        Task::Install => return later("install"),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn later(command: &str) -> ExitCode {
    eprintln!("xtask: {command} comes with a later issue");
    ExitCode::from(2)
}

/// The workspace's directory.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
