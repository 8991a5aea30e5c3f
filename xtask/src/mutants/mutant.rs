//! One mutant: a text that says what is broken, which test must catch it, and the replacements that break it. Owns the form of such
//! a file and the rule that each text to replace stands exactly once in its file. Reads sources; writes none.
//!
//! ```text
//! What is broken and what that would do, in one line or more.
//! test: unit PACKAGE PATH::OF::TEST      or case PACKAGE PROGRAM NAME      or suite NAME THE CHECK'S NAME
//! file: sigblock/src/word.rs
//! <<<<
//! text as it stands
//! ====
//! text in its place
//! >>>>
//! ```
//!
//! `file:` and what follows it may come again.

use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A test by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// A unit test of a package of the workspace, by its path.
    Unit {
        /// The package.
        package: String,
        /// The path, as the test harness prints it.
        path: String,
    },
    /// A case of a test program that has a harness of its own: it runs the cases whose names are given, prints
    /// `test PROGRAM::NAME ... FAILED` for one that fails, and ends with cargo's closing line.
    Case {
        /// The package.
        package: String,
        /// The test program.
        program: String,
        /// The case.
        name: String,
    },
    /// A check of a suite, by its name in the report.
    Suite {
        /// The suite.
        suite: String,
        /// The check.
        check: String,
    },
}

impl fmt::Display for Test {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit { package, path } => write!(out, "unit {package} {path}"),
            Self::Case { package, program, name } => write!(out, "case {package} {program} {name}"),
            Self::Suite { suite, check } => write!(out, "suite {suite} {check}"),
        }
    }
}

/// A deliberate breakage.
#[derive(Debug)]
pub struct Mutant {
    /// Its file's name.
    pub name: String,
    /// What is broken.
    pub summary: String,
    /// What must catch it.
    pub test: Test,
    changes: Vec<Change>,
}

/// One replacement.
#[derive(Debug, PartialEq)]
struct Change {
    file: PathBuf,
    old: String,
    new: String,
}

impl Mutant {
    /// Reads a mutant's text.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let (mut summary, mut test, mut file) = (Vec::new(), None, None);
        let mut changes = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(words) = line.strip_prefix("test: ") {
                ensure!(test.replace(parse_test(words)?).is_none(), "two tests");
            } else if let Some(path) = line.strip_prefix("file: ") {
                file = Some(PathBuf::from(path));
            } else if line == "<<<<" {
                let file = file.clone().context("a replacement before its file")?;
                let old = until(&mut lines, "====")?;
                let new = until(&mut lines, ">>>>")?;
                ensure!(!old.is_empty() && old != new, "a replacement that changes nothing");
                changes.push(Change { file, old, new });
            } else if file.is_none() && test.is_none() {
                summary.push(line.trim());
            } else {
                ensure!(line.is_empty(), "what is this: {line}");
            }
        }
        ensure!(summary.iter().any(|line| !line.is_empty()), "it does not say what is broken");
        ensure!(!changes.is_empty(), "it changes nothing");
        Ok(Self {
            name: name.to_owned(),
            summary: summary.join(" ").trim().to_owned(),
            test: test.context("it names no test")?,
            changes,
        })
    }

    /// The changed files of the workspace at `root`, by path; an error unless each text to replace stands exactly once.
    pub fn apply(&self, root: &Path) -> Result<BTreeMap<PathBuf, String>> {
        let mut changed: BTreeMap<PathBuf, String> = BTreeMap::new();
        for Change { file, old, new } in &self.changes {
            let text = match changed.get(file) {
                Some(text) => text.clone(),
                None => fs::read_to_string(root.join(file)).with_context(|| file.display().to_string())?,
            };
            let found = text.matches(old).count();
            ensure!(found == 1, "found {found} times in {}, not once:\n{old}", file.display());
            changed.insert(file.clone(), text.replacen(old, new, 1));
        }
        Ok(changed)
    }
}

fn parse_test(words: &str) -> Result<Test> {
    if let ["case", package, program, name] = *words.split(' ').collect::<Vec<_>>().as_slice() {
        let [package, program, name] = [package, program, name].map(str::to_owned);
        return Ok(Test::Case { package, program, name });
    }
    match *words.splitn(3, ' ').collect::<Vec<_>>().as_slice() {
        ["unit", package, path] => Ok(Test::Unit { package: package.to_owned(), path: path.to_owned() }),
        ["suite", suite, check] => Ok(Test::Suite { suite: suite.to_owned(), check: check.to_owned() }),
        _ => bail!("no unit test, no case and no suite's check: {words}"),
    }
}

/// The lines before the one that ends them.
fn until<'a>(lines: &mut impl Iterator<Item = &'a str>, end: &str) -> Result<String> {
    let mut text = String::new();
    for line in lines {
        if line == end {
            return Ok(text);
        }
        text.push_str(line);
        text.push('\n');
    }
    bail!("no {end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "Nothing is\nexact.\ntest: suite some a check, by name\nfile: Cargo.toml\n<<<<\n[workspace]\n====\n[w]\n>>>>\n";

    #[test]
    fn a_mutant_is_read_and_applied() {
        let mutant = Mutant::parse("exact", TEXT).unwrap();
        assert_eq!(mutant.summary, "Nothing is exact.");
        assert_eq!(mutant.test.to_string(), "suite some a check, by name");
        assert_eq!(parse_test("case some program one").unwrap().to_string(), "case some program one");
        let changed = mutant.apply(&crate::root()).unwrap();
        assert!(changed.get(Path::new("Cargo.toml")).unwrap().contains("\n[w]\n"));
    }

    #[test]
    fn what_does_not_stand_exactly_once_does_not_apply() {
        let none = Mutant::parse("none", &TEXT.replace("[workspace]\n", "no such line\n")).unwrap();
        assert!(none.apply(&crate::root()).is_err());
        let twice = Mutant {
            changes: vec![Change { file: "Cargo.toml".into(), old: "rtld".to_owned(), new: String::new() }],
            ..Mutant::parse("twice", TEXT).unwrap()
        };
        assert!(twice.apply(&crate::root()).is_err());
    }

    #[test]
    fn files_that_say_too_little_are_errors() {
        for (old, new) in [
            ("Nothing is\nexact.\n", ""),
            ("test: suite some a check, by name\n", ""),
            ("test: suite", "test: suits"),
            ("file: Cargo.toml\n", ""),
            (">>>>\n", ""),
            ("====\n[w]", "====\n[workspace]"),
        ] {
            assert!(Mutant::parse("bad", &TEXT.replace(old, new)).is_err(), "{old:?}");
        }
    }
}
