//! Compares a program's table of cases (`tests/programs/sigblock/semantics/cases.h`) under ld-linux and in each back
//! end: one check for each case and back end. Decides nothing about what is right: each case says what it expects,
//! and `=` stands for what ld-linux gave in the same run.

use crate::harness::{Context, Outcome, Place, Report, Run, Way};
use std::path::Path;

/// One case of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Case {
    name: String,
    seen: String,
    expected: String,
}

/// Runs `program` on each loader and in each back end. `configure` adds environment and arguments to each run.
pub fn compare(context: &Context, report: &mut Report, subject: &str, program: &Path, configure: impl Fn(Run) -> Run) {
    let configure = |run: Run| paced(context, configure(run));
    let reference = configure(Run::new(program)).way(Way::Reference);
    let reference = match table(context, &reference.limit(LIMIT), "ld-linux") {
        Ok(cases) => cases,
        Err(error) => return report.check(format!("{subject} (ld-linux)"), Err(error)),
    };
    for case in &reference {
        report.check(format!("{subject}: {} (ld-linux)", case.name), expected(case, &case.expected));
    }
    for &back_end in context.place.back_ends() {
        let run = configure(Run::new(program)).way(Way::Interpreter).back_end(back_end);
        let cases = match table(context, &run.limit(LIMIT), back_end) {
            Ok(cases) => cases,
            Err(error) => {
                report.check(format!("{subject} ({back_end})"), Err(error));
                continue;
            }
        };
        let names = |cases: &[Case]| cases.iter().map(|case| case.name.clone()).collect::<Vec<_>>();
        report.equal(format!("{subject}: all cases ran ({back_end})"), names(&cases), names(&reference));
        for case in &cases {
            let theirs = reference.iter().find(|other| other.name == case.name);
            let want = if case.expected == "=" { theirs.map_or("", |theirs| &theirs.seen) } else { &case.expected };
            report.check(format!("{subject}: {} ({back_end})", case.name), expected(case, want));
        }
    }
}

/// Runs some cases of `program` in each back end alone: ld-linux cannot do them, so that each must say what it expects.
pub fn alone(context: &Context, report: &mut Report, subject: &str, program: &Path, names: &[&str]) {
    for &back_end in context.place.back_ends() {
        let run = paced(context, Run::new(program).way(Way::Interpreter).args(names).back_end(back_end));
        let cases = match table(context, &run.limit(LIMIT), back_end) {
            Ok(cases) => cases,
            Err(error) => {
                report.check(format!("{subject} ({back_end})"), Err(error));
                continue;
            }
        };
        report.equal(format!("{subject}: all cases ran ({back_end})"), cases.len(), names.len());
        for case in &cases {
            let written = case.expected != "=";
            let checked = if written { expected(case, &case.expected) } else { Err("it expects nothing".to_owned()) };
            report.check(format!("{subject}: {} ({back_end})", case.name), checked);
        }
    }
}

/// Seconds for a whole table; a case that hangs ends itself before that.
const LIMIT: u64 = 120;
/// What long cases do in a guest of the kernel lab is one in so many of what they do elsewhere.
const SLOWER: u32 = 50;
/// Seconds for one case.
const CASE_LIMIT: u32 = 20;

/// Gives each case the time that it needs here, and less to do where everything takes longer.
fn paced(context: &Context, run: Run) -> Run {
    let patience = context.place.patience();
    let run = run.env("CASE_SECONDS", (CASE_LIMIT * patience).to_string());
    if context.place == Place::Guest { run.env("CASE_SLOWER", SLOWER.to_string()) } else { run }
}

/// Whether a case saw what it must. What is only compared must at least be there.
fn expected(case: &Case, want: &str) -> Result<(), String> {
    let right = if want == "=" { !case.seen.is_empty() } else { case.seen == want };
    if right { Ok(()) } else { Err(format!("expected {want}\ngot      {}", case.seen)) }
}

/// The cases of one run, which must have been in `back_end` and complete.
fn table(context: &Context, run: &Run, back_end: &str) -> Result<Vec<Case>, String> {
    let outcome = run.output(context).map_err(|error| format!("{error:#}"))?;
    outcome.succeeded()?;
    let mut cases = parse(&outcome)?;
    let told = |what: &str| format!("{what}\n{}", outcome.describe());
    let first = if cases.is_empty() { None } else { Some(cases.remove(0)) };
    if first.is_none_or(|case| case.name != "backend" || case.seen != back_end) {
        return Err(told(&format!("the back end is not {back_end}")));
    }
    let last = cases.pop().ok_or_else(|| told("no cases"))?;
    if last.name != "end" || last.seen != cases.len().to_string() || cases.is_empty() {
        return Err(told("the table is not complete"));
    }
    if !outcome.stderr.is_empty() {
        return Err(told("there is something on standard error"));
    }
    Ok(cases)
}

fn parse(outcome: &Outcome) -> Result<Vec<Case>, String> {
    let case = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields.as_slice() {
            [name, seen, expected] => {
                Ok(Case { name: (*name).to_owned(), seen: (*seen).to_owned(), expected: (*expected).to_owned() })
            }
            _ => Err(format!("a line that is no case: {line}\n{}", outcome.describe())),
        }
    };
    outcome.text().lines().map(case).collect()
}
