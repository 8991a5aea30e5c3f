//! What `python3 -m test --junit-xml` writes: one element a test, with a child element if it was skipped or went wrong.
//! Owns the reading and the comparison of two runs, test by test.

use anyhow::{Context as _, bail, ensure};
use std::collections::BTreeMap;
use std::fmt;

/// How one test ended, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Passed,
    Skipped,
    Failed,
}

/// The tests of one module by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Results {
    tests: BTreeMap<String, End>,
}

impl Results {
    /// Reads the file.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        let mut tests = BTreeMap::new();
        let mut elements = text.split("<testcase ");
        let head = elements.next().context("an empty file")?;
        for element in elements {
            let (_, rest) = element.split_once("name=\"").context("a testcase without a name")?;
            let (name, rest) = rest.split_once('"').context("a name without an end")?;
            let end = if rest.contains("<failure") || rest.contains("<error") {
                End::Failed
            } else if rest.contains("<skipped") {
                End::Skipped
            } else if rest.contains("result=\"completed\"") {
                End::Passed
            } else {
                bail!("a testcase that neither passed nor failed: {rest:.200}");
            };
            // A name stands twice if a test and the clean-up after it both went wrong.
            let worst = tests.entry(name.to_owned()).or_insert(end);
            *worst = end.max(*worst);
        }
        // The head counts too: a reader that misses elements must not go unnoticed.
        let counted: usize = attribute(head, "tests").context("no count of tests")?.parse()?;
        ensure!(tests.len() <= counted.max(1) && !tests.is_empty(), "{} tests read, {counted} counted", tests.len());
        Ok(Self { tests })
    }

    /// Tests that ran, skipped ones not counted.
    pub fn run(&self) -> usize {
        self.count(End::Passed) + self.count(End::Failed)
    }

    fn count(&self, end: End) -> usize {
        self.tests.values().filter(|&&other| other == end).count()
    }

    /// The tests that ended otherwise than in `reference`; `None` if there are none.
    pub fn difference(&self, reference: &Self) -> Option<String> {
        let names = self.tests.keys().chain(reference.tests.keys().filter(|name| !self.tests.contains_key(*name)));
        let differing: Vec<String> = names
            .filter_map(|name| {
                let (ours, theirs) = (self.tests.get(name), reference.tests.get(name));
                (ours != theirs).then(|| format!("{name}: {}, under ld-linux {}", word(ours), word(theirs)))
            })
            .collect();
        (!differing.is_empty()).then(|| differing.join("\n"))
    }
}

impl fmt::Display for Results {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed, skipped) = (self.count(End::Passed), self.count(End::Failed), self.count(End::Skipped));
        write!(formatter, "{} run, {passed} passed, {failed} failed, {skipped} skipped", self.run())
    }
}

fn word(end: Option<&End>) -> &'static str {
    match end {
        None => "not run",
        Some(End::Passed) => "passed",
        Some(End::Skipped) => "skipped",
        Some(End::Failed) => "failed",
    }
}

fn attribute<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    Some(text.split_once(&format!("{name}=\""))?.1.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "<testsuites tests=\"3\" errors=\"0\" failures=\"1\"><testsuite tests=\"3\">\
        <testcase name=\"m.a\" status=\"run\" result=\"completed\" time=\"1\" />\
        <testcase name=\"m.b\" status=\"run\" result=\"completed\" time=\"1\"><skipped>no</skipped></testcase>\
        <testcase name=\"m.c\" status=\"run\" result=\"completed\" time=\"1\"><failure>x</failure></testcase></testsuite>";

    #[test]
    fn counts() {
        assert_eq!(Results::read(TEXT).unwrap().to_string(), "2 run, 1 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn a_difference_is_named() {
        let one = Results::read(TEXT).unwrap();
        let two = Results::read(&TEXT.replace("<failure>x</failure>", "")).unwrap();
        assert_eq!(one.difference(&one), None);
        assert_eq!(one.difference(&two).unwrap(), "m.c: failed, under ld-linux passed");
    }

    #[test]
    fn an_empty_file_is_an_error() {
        assert!(Results::read("<testsuites tests=\"0\">").is_err());
    }
}
