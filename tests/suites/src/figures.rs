//! What a long-running program counted, printed by it (or by the loader, at exit) as `KEY=VALUE` words, and the checks on such counts. Owns
//! the reading and the words of a failure; which figures must hold is each suite's business.

use crate::harness::{Context, Outcome, Report, Run, Status};
use std::collections::BTreeMap;

/// The figures of one run.
pub struct Figures {
    name: String,
    line: String,
    values: BTreeMap<String, String>,
    description: String,
}

impl Figures {
    /// The figures of a run, noted; a run without them is a failed check.
    pub fn of(context: &Context, report: &mut Report, name: &str, run: &Run) -> Option<Self> {
        let outcome = run.output(context).map_err(|error| format!("{error:#}"));
        match outcome.and_then(|outcome| Self::read(name, &outcome)) {
            Ok(figures) => {
                report.note(format!("{name}: {}", figures.line()));
                Some(figures)
            }
            Err(error) => {
                report.check(format!("{name}: runs to its end"), Err(error));
                None
            }
        }
    }

    /// Reads both outputs of a run that ended by exit 0; the failure of any other run.
    pub fn read(name: &str, outcome: &Outcome) -> Result<Self, String> {
        if outcome.status != Status::Exit(0) {
            return Err(format!("expected Exit(0)\ngot      {}", outcome.describe()));
        }
        let text = outcome.text() + &outcome.error_text();
        let values: BTreeMap<String, String> = text
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        if values.is_empty() {
            return Err(format!("expected KEY=VALUE\ngot      {}", outcome.describe()));
        }
        Ok(Self {
            name: name.to_owned(),
            line: text.split_whitespace().collect::<Vec<_>>().join(" "),
            values,
            description: outcome.describe(),
        })
    }

    /// The figures as they were printed, for a note.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// A figure as it was printed; empty if it was not.
    pub fn word(&self, key: &str) -> &str {
        self.values.get(key).map_or("", String::as_str)
    }

    /// A figure that is a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.word(key).parse().ok()
    }

    /// Checks that a figure is this word.
    pub fn is(&self, report: &mut Report, key: &str, want: &str) {
        self.judge(report, key, want, self.word(key) == want);
    }

    /// Checks that each of these figures was printed and is 0.
    pub fn all_zero(&self, report: &mut Report, keys: &[&str]) {
        for key in keys {
            self.judge(report, key, "0", self.number(key) == Some(0));
        }
    }

    /// Checks that a figure reaches a number.
    pub fn at_least(&self, report: &mut Report, key: &str, want: u64) {
        self.judge(report, key, &format!("{want} or more"), self.number(key).is_some_and(|number| number >= want));
    }

    /// Checks that a figure does not exceed a number.
    pub fn at_most(&self, report: &mut Report, key: &str, want: u64) {
        self.judge(report, key, &format!("{want} or less"), self.number(key).is_some_and(|number| number <= want));
    }

    fn judge(&self, report: &mut Report, key: &str, want: &str, right: bool) {
        let result = if right {
            Ok(())
        } else {
            Err(format!("expected {key} {want}, got {:?}\n{}", self.word(key), self.description))
        };
        report.check(format!("{}: {key} {want}", self.name), result);
    }
}
