//! The programs of the bench and the variants in which each runs: how they are built, started and proven to run on the loader and
//! in the back end meant, and what they print. Owns no figures. Timed runs are not traced: a tracer stops its child at every
//! signal; which loader runs is shown once, by a traced run.

use anyhow::{Context as _, Result, bail, ensure};
use rtld_suites::harness::{Build, Compiler, Context, Run, Status, Way};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

/// Functions that the program `lazy` binds.
const FUNCTIONS: u64 = 5000;
/// Distance of one call from the next among the functions; prime, so that all are called.
const STRIDE: u64 = 3571;

/// A loader, and the back end if it is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Ours, with first-line handlers in user mode.
    User,
    /// Ours, with two calls of sigprocmask in every section.
    Sigprocmask,
    /// Ours, holding nothing.
    Off,
    /// ld-linux.
    Reference,
}

impl Variant {
    /// All, in the order in which they are printed.
    pub const ALL: [Self; 4] = [Self::User, Self::Sigprocmask, Self::Off, Self::Reference];

    /// The value of LD_SIGBLOCK, or the other loader.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Sigprocmask => "sigprocmask",
            Self::Off => "off",
            Self::Reference => "ld-linux",
        }
    }

    /// What a program must print as its back end.
    fn backend(self) -> &'static str {
        if self == Self::Reference { "none" } else { self.name() }
    }

    fn way(self) -> Way {
        if self == Self::Reference { Way::Reference } else { Way::Interpreter }
    }
}

/// One program.
pub struct Case {
    /// Its name in tables.
    pub name: &'static str,
    /// The phases that become rows.
    pub rows: &'static [&'static str],
    file: PathBuf,
    /// Operations of a timed run, and of the traced one.
    counts: (u64, u64),
    /// Sections that the traced run must have opened at least.
    sections: u64,
    /// Signals that it must have held, where something holds them in user mode.
    held: u64,
}

/// What one run printed of one phase; times of all operations together, nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Operations.
    pub count: f64,
    /// Processor time by the process's own clock.
    pub processor: f64,
    /// User time as the kernel accounts it.
    pub user: f64,
    /// System time, likewise.
    pub system: f64,
}

/// Builds every program.
pub fn build(context: &Context) -> Result<Vec<Case>> {
    let source = |name: &str| Build::new(format!("bench/sigblock/{name}")).flags(&["-O2", "-Wall", "-Werror"]);
    let throw = source("throw.cpp").compiler(Compiler::Clang).flags(&[
        "-stdlib=libc++",
        "--unwindlib=libunwind",
        "--rtlib=compiler-rt",
    ]);
    let throw = throw.build(context).context("(Debian packages libc++-dev, libunwind-N-dev, libclang-rt-N-dev)")?;
    let case = |name, rows, file, counts| Case { name, rows, file, counts, sections: 0, held: 0 };
    Ok(vec![
        case(
            "section",
            &["word", "locked", "sigprocmask", "functions"],
            source("section.c").build(context)?,
            (10_000_000, 10_000),
        ),
        Case { held: 100, ..case("signal", &["outside", "inside"], source("latency.c").build(context)?, (4000, 100)) },
        // Each of 100 exceptions asks for two frames at least.
        Case { sections: 200, ..case("throw", &["depth-1", "depth-10"], throw, (20_000, 100)) },
        Case { sections: FUNCTIONS, ..case("bind", &["first"], lazy(context)?, (FUNCTIONS, FUNCTIONS)) },
    ])
}

/// A library of functions and a program that calls them in an order that is not the library's.
fn lazy(context: &Context) -> Result<PathBuf> {
    let (mut library, mut calls) = (String::new(), String::new());
    for number in 0..FUNCTIONS {
        // As long as names of C++ are.
        let name = |number: u64| format!("_ZN5bench8sigblock7library9Component{:04}6method{:04}", number / 8, number);
        writeln!(library, "long {}(long x) {{ return x + {number}; }}", name(number))?;
        writeln!(calls, "long {}(long);", name(number))?;
        if number + 1 == FUNCTIONS {
            writeln!(calls, "long call_all(void) {{ long sum = 0;")?;
            for step in 0..FUNCTIONS {
                writeln!(calls, "sum = {}(sum);", name(step * STRIDE % FUNCTIONS))?;
            }
            writeln!(calls, "return sum; }}")?;
        }
    }
    let library = Build::inline("library.c", &library)
        .shared()
        .flags(&["-O1", "-Wl,-soname,libbound.so"])
        .output("libbound.so")
        .build(context)?;
    Build::new("bench/sigblock/lazy.c")
        .text("calls.c", &calls)
        .flags(&["-O1", "-Wl,-z,lazy", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"])
        .with(library)
        .output("lazy")
        .build(context)
}

impl Case {
    fn run(&self, variant: Variant, count: u64) -> Run {
        let run = Run::new(&self.file).way(variant.way()).args([count.to_string()]);
        match variant {
            Variant::Reference => run,
            _ => run.env("LD_SIGBLOCK", variant.name()),
        }
    }

    /// A traced run, which shows which loader runs, in which back end by its own account, and that what is measured is sections.
    pub fn prove(&self, context: &Context, variant: Variant) -> Result<()> {
        let mut run = self.run(variant, self.counts.1);
        if variant != Variant::Reference {
            run = run.env("LD_DEBUG", "sigblock");
        }
        let outcome = run.output(context)?;
        let said = outcome.error_text();
        if outcome.status != Status::Exit(0) {
            bail!("{}", outcome.describe());
        }
        parse(&outcome.text(), variant)?;
        if variant == Variant::Reference {
            return Ok(());
        }
        let line =
            said.lines().find(|line| line.starts_with("sigblock: ")).context("LD_DEBUG=sigblock said nothing")?;
        let word = format!("backend={}", variant.name());
        ensure!(line.split(' ').any(|field| field == word), "not {word}: {line}");
        if variant != Variant::Off {
            let sections = field(line, "sections=")?;
            ensure!(sections >= self.sections, "fewer than {} sections: {line}", self.sections);
        }
        if variant == Variant::User {
            let held = field(line, "held=")?;
            ensure!(held >= self.held, "fewer than {} signals held: {line}", self.held);
        }
        Ok(())
    }

    /// A timed run.
    pub fn time(&self, context: &Context, variant: Variant) -> Result<Vec<Phase>> {
        let mut command = self.run(variant, self.counts.0).command(context)?;
        let output = command.stdin(Stdio::null()).output()?;
        let (said, failed) = (String::from_utf8(output.stdout)?, String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success() && failed.is_empty(), "{}: {said}{failed}", output.status);
        parse(&said, variant)
    }
}

/// The number behind `name` in a line of fields.
fn field(line: &str, name: &str) -> Result<u64> {
    let value = line.split(' ').find_map(|field| field.strip_prefix(name));
    value.and_then(|value| value.parse().ok()).with_context(|| format!("no {name} in: {line}"))
}

/// What a program printed; an error if it ran in another back end than meant.
fn parse(text: &str, variant: Variant) -> Result<Vec<Phase>> {
    let mut lines = text.lines();
    let backend = lines.next().and_then(|line| line.strip_prefix("backend "));
    ensure!(backend == Some(variant.backend()), "back end {backend:?}, not {}", variant.backend());
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let ["phase", name, numbers @ ..] = fields.as_slice() else { bail!("not a phase: {line}") };
            let numbers: Result<Vec<f64>, _> = numbers.iter().map(|number| number.parse::<f64>()).collect();
            let [count, processor, user, system] = *numbers?.as_slice() else { bail!("not four numbers: {line}") };
            Ok(Phase { name: (*name).to_owned(), count, processor, user, system })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_read() {
        let text = "backend user\nphase word 10 20 30 40\n";
        let phase = Phase { name: "word".to_owned(), count: 10.0, processor: 20.0, user: 30.0, system: 40.0 };
        assert_eq!(parse(text, Variant::User).unwrap(), [phase]);
        assert!(parse("backend user\nphase word 10 20 30\n", Variant::User).is_err());
    }

    #[test]
    fn another_back_end_is_an_error() {
        assert!(parse("backend sigprocmask\n", Variant::User).is_err());
        assert!(parse("backend none\n", Variant::Off).is_err());
        assert!(parse("backend none\n", Variant::Reference).is_ok());
    }

    #[test]
    fn fields_of_the_exit_line() {
        let line = "sigblock: backend=user reason=\"no kernel\" sections=12 held=3";
        assert_eq!(field(line, "sections=").unwrap(), 12);
        assert!(field(line, "calls=").is_err());
    }

    #[test]
    fn every_function_is_called() {
        let mut called: Vec<u64> = (0..FUNCTIONS).map(|step| step * STRIDE % FUNCTIONS).collect();
        called.sort_unstable();
        called.dedup();
        assert_eq!(called.len() as u64, FUNCTIONS);
    }
}
