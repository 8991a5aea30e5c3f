//! Counting: each check passes or fails once, a failure is printed at once with what was expected and what came. Decides
//! nothing about what is right.

use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::{Debug, Display};
use std::io::IsTerminal;
use std::time::Duration;

/// Checks that passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Checks that passed.
    pub passed: usize,
    /// Checks that failed.
    pub failed: usize,
}

impl Counts {
    /// Adds another count to this one.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// The report of one suite, printed as it grows.
pub struct Report {
    suite: String,
    counts: Counts,
    failures: Vec<String>,
    spinner: Option<ProgressBar>,
    verbose: bool,
    quiet: bool,
}

impl Report {
    /// A report that prints; `RTLD_VERBOSE=1` prints passing checks too.
    pub fn new(suite: &str) -> Self {
        let verbose = std::env::var_os("RTLD_VERBOSE").is_some_and(|value| value == "1");
        let spinner = (std::io::stderr().is_terminal() && !verbose).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar.set_message(suite.to_owned());
            bar
        });
        Self {
            suite: suite.to_owned(),
            counts: Counts::default(),
            failures: Vec::new(),
            spinner,
            verbose,
            quiet: false,
        }
    }

    /// A report that prints nothing, for tests of the harness itself.
    pub fn quiet(suite: &str) -> Self {
        Self {
            suite: suite.to_owned(),
            counts: Counts::default(),
            failures: Vec::new(),
            spinner: None,
            verbose: false,
            quiet: true,
        }
    }

    /// Counts one check; the message of a failure says what was expected, what came, and the command line.
    pub fn check(&mut self, name: impl Display, result: Result<(), String>) {
        let name = name.to_string();
        match result {
            Ok(()) => {
                self.counts.passed += 1;
                if self.verbose {
                    self.print(&format!("pass {}: {name}", self.suite));
                }
            }
            Err(message) => {
                self.counts.failed += 1;
                self.print(&format!("FAIL {}: {name}", self.suite));
                for line in message.lines() {
                    self.print(&format!("     {line}"));
                }
                self.failures.push(name.clone());
            }
        }
        if let Some(bar) = &self.spinner {
            bar.set_message(format!("{} {} {name}", self.suite, self.counts.passed + self.counts.failed));
        }
    }

    /// Counts one check that two values are equal.
    pub fn equal<T: PartialEq<U> + Debug, U: Debug>(&mut self, name: impl Display, got: T, want: U) {
        let result = if got == want { Ok(()) } else { Err(format!("expected {want:?}\ngot      {got:?}")) };
        self.check(name, result);
    }

    /// Prints a line that is not counted.
    pub fn note(&mut self, line: impl Display) {
        self.print(&format!("     {}: {line}", self.suite));
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Names of the checks that failed.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Removes the progress line.
    pub fn finish(&mut self) {
        if let Some(bar) = self.spinner.take() {
            bar.finish_and_clear();
        }
    }

    fn print(&self, line: &str) {
        if self.quiet {
            return;
        }
        match &self.spinner {
            Some(bar) => bar.suspend(|| println!("{line}")),
            None => println!("{line}"),
        }
    }
}
