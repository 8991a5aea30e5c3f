//! `cargo xtask kernel`: the kernel patch of `sigblock/linux`, built and tested in QEMU. Owns the command and its count; sources,
//! trees, builds, images, boots, deliberate breakages and the proof that off means off are a file each. Everything is kept in
//! `target/kernel`, which may be deleted at any time.

mod boot;
mod build;
mod image;
mod loader;
mod mutants;
mod off;
mod source;
mod tree;

pub use loader::guest;
pub use mutants::{list as list_mutants, run as mutants};
pub use off::test as off;

use anyhow::Context as _;
use clap::ValueEnum;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Whose kernel.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Debian {
    /// Debian 12: Linux 6.1
    Bookworm,
    /// Debian 13: Linux 6.12
    Trixie,
}

/// Which checks are built into the kernel.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Config {
    /// Sleeping in atomic context and damaged lists are found
    Default,
    /// Also preemption, and locks taken in wrong order or context
    Lockdep,
    /// Also memory used after it was freed or beyond its end
    Kasan,
}

/// What is run on it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// The tests of sigblock/linux/lab
    Kernel,
    /// Our loader with the kernel back end
    Loader,
    /// Both
    All,
}

/// What `kernel test` is asked.
#[derive(clap::Args)]
pub struct Settings {
    /// Whose kernel
    #[arg(long, value_enum, default_value_t = Debian::Bookworm)]
    debian: Debian,
    /// Which checks are built into the kernel
    #[arg(long, value_enum, default_value_t = Config::Default)]
    config: Config,
    /// What is run on it
    #[arg(long, value_enum, default_value_t = Suite::Kernel)]
    suite: Suite,
    /// Tests of suite kernel by name, or suites that run in suite loader; all unless given
    tests: Vec<String>,
}

impl Debian {
    /// The release of Linux, as in the names of packages and of our patches.
    fn linux(self) -> &'static str {
        match self {
            Self::Bookworm => "6.1",
            Self::Trixie => "6.12",
        }
    }

    fn codename(self) -> &'static str {
        match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
        }
    }
}

impl Config {
    /// Its fragments in `sigblock/linux/config`, later ones override.
    fn fragments(self) -> &'static [&'static str] {
        match self {
            Self::Default => &["default.config"],
            Self::Lockdep => &["default.config", "lockdep.config"],
            Self::Kasan => &["default.config", "kasan.config"],
        }
    }
}

/// Tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that passed.
    pub passed: usize,
    /// Those that failed, did not run to their end, or could not run.
    pub failed: usize,
}

impl Counts {
    fn passed(self) -> bool {
        self.failed == 0 && self.passed > 0
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// `kernel test`: true if every test of every suite asked for ran and passed.
pub fn test(settings: &Settings) -> anyhow::Result<bool> {
    run(settings).map(Counts::passed)
}

/// The suite `kernel` of `cargo xtask test`: what `kernel test` does if it is asked for nothing in particular.
pub fn suite() -> anyhow::Result<Counts> {
    run(&Settings { debian: Debian::Bookworm, config: Config::Default, suite: Suite::Kernel, tests: Vec::new() })
}

/// The soak `kernel`: each storm until it has done 10,000,000 sections and 100,000 signals.
pub fn soak() -> anyhow::Result<Counts> {
    let tests = ["--full", "storm_one_thread", "storm_four_threads", "storm_full_queue", "storm_of_the_process"];
    let tests = tests.iter().map(|test| (*test).to_owned()).collect();
    run(&Settings { debian: Debian::Bookworm, config: Config::Default, suite: Suite::Kernel, tests })
}

fn run(settings: &Settings) -> anyhow::Result<Counts> {
    let tests: Vec<&str> = settings.tests.iter().map(String::as_str).collect();
    if settings.suite == Suite::All && !tests.is_empty() {
        anyhow::bail!("kernel test: tests by name need --suite kernel or --suite loader");
    }
    let source = source::find(settings.debian)?;
    let started = Instant::now();
    let kernel = build::kernel(&source, settings.config)?;
    let origin = match kernel.cached {
        true => "cached".to_owned(),
        false => format!("built in {} s", started.elapsed().as_secs()),
    };
    let testing = Instant::now();
    let mut counts = Counts::default();
    let mut well = true;
    if settings.suite != Suite::Loader {
        let image = image::kernel_tests()?;
        let program: Vec<&str> = [TESTS].iter().chain(&tests).copied().collect();
        let report = boot::run(&kernel.vmlinux, &image, &program, settings.config, &mut |line| println!("{line}"))?;
        std::fs::remove_file(&image)?;
        counts.add(report.counts);
        well &= report.counts.passed();
        if tests.is_empty() {
            // Else there would be no kernel of that key.
            println!("ok checkpatch");
            counts.passed += 1;
        }
    }
    if settings.suite != Suite::Kernel {
        let image = loader::image(&tests)?;
        let program: Vec<&str> = image.program.iter().map(String::as_str).collect();
        let mut show = |line: &str| {
            if !line.starts_with("pass ") {
                println!("{line}");
            }
        };
        let report = boot::run(&kernel.vmlinux, &image.file, &program, settings.config, &mut show)?;
        std::fs::remove_file(&image.file)?;
        counts.add(report.counts);
        well &= report.counts.passed();
    }
    if !well && counts.failed == 0 {
        counts.failed = 1;
    }
    println!("kernel test: {counts} (kernel {}, {origin}, tests {} s)", kernel.key, testing.elapsed().as_secs());
    Ok(counts)
}

/// The program with the tests of suite kernel, in its image.
const TESTS: &str = "/bin/ktest";

/// `kernel patch`: prints the whole patch for one kernel.
pub fn patch(debian: Debian) -> anyhow::Result<()> {
    print!("{}", build::whole_patch(debian)?);
    Ok(())
}

/// The patch, the configuration and the tests.
fn sources() -> PathBuf {
    super::root().join("sigblock/linux")
}

/// `target/kernel`, made if missing.
fn directory() -> anyhow::Result<PathBuf> {
    let path = super::root().join("target/kernel");
    std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    path.canonicalize().with_context(|| path.display().to_string())
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}
