//! Cases that have names of their own: `cargo xtask test --list` prints them, each beginning with the clause that it shows, so
//! that one can see which test stands for which sentence. Owns how they are run one by one; what they check is their suites'.

use crate::harness::{Context, Report};
use anyhow::Result;

/// One case: a name, and checks whose names begin with it.
pub struct Case {
    /// The clause, and what the case shows. No case's name begins with another one's.
    pub name: &'static str,
    /// Runs the checks; it is given the name. An error counts as one failed check.
    pub run: fn(&Context, &mut Report, &str) -> Result<()>,
}

/// The variable that chooses one case, by the name of a check of it (`cargo xtask mutants`).
const SUBJECT: &str = "RTLD_SUBJECT";

/// Runs the cases in order, or the one that was asked for.
pub fn run_cases(context: &Context, report: &mut Report, cases: &[Case]) {
    let subject = std::env::var(SUBJECT).unwrap_or_default();
    let known = cases.iter().any(|case| subject.starts_with(case.name));
    for case in cases.iter().filter(|case| !known || subject.starts_with(case.name)) {
        // One that cannot be built must not hide the others.
        if let Err(error) = (case.run)(context, report, case.name) {
            report.check(format!("{} (runs to its end)", case.name), Err(format!("{error:#}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::CASES;

    #[test]
    fn each_case_names_its_clause_and_begins_no_other_one() {
        let names: Vec<&str> = CASES.iter().flat_map(|(_, cases)| cases.iter().map(|case| case.name)).collect();
        for name in &names {
            let clause = name.split(' ').next().unwrap_or_default();
            assert!(clause.split('.').all(|number| number.parse::<u32>().is_ok()), "{name}");
            assert_eq!(names.iter().filter(|other| other.starts_with(name)).count(), 1, "{name}");
        }
    }
}
