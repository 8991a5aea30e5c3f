//! The usual check of our suites: one program under ld-linux and, in the same run, in the four ways of our loader; status,
//! standard output and standard error must be equal. Owns that comparison. It may not decide what ld-linux should do, but
//! each case also says what its author expects of ld-linux, so that two equal failures are not taken for agreement.

use std::path::Path;

use crate::harness::{Bind, Context, Outcome, Report, Run, Status, WAYS, Way};

/// What ld-linux must do with the case for the case to show anything.
#[derive(Clone, Copy, Debug)]
pub enum Want<'a> {
    /// Exit status 0 and exactly this on standard output, surrounding white space aside; standard error is only compared.
    Prints(&'a str),
    /// This exit status, nothing on standard output, and this text somewhere on standard error.
    Fails(i32, &'a str),
    /// Exit status 0, this on standard output, and this text somewhere on standard error.
    Warns(&'a str, &'a str),
    /// This exit status, nothing on standard output, and exactly this on standard error.
    Says(i32, &'a str),
    /// Exit status 0, exactly this on standard output, surrounding white space aside, and nothing on standard error.
    Clean(&'a str),
}

impl Want<'_> {
    /// Whether an outcome is what the author of the case expects.
    pub fn accepts(&self, outcome: &Outcome) -> Result<(), String> {
        let text = outcome.text();
        let text = text.trim();
        let error = outcome.error_text();
        let accepted = match self {
            Want::Prints(stdout) => outcome.status == Status::Exit(0) && text == *stdout,
            Want::Fails(status, stderr) => {
                outcome.status == Status::Exit(*status) && text.is_empty() && error.contains(stderr)
            }
            Want::Warns(stdout, stderr) => {
                outcome.status == Status::Exit(0) && text == *stdout && error.contains(stderr)
            }
            Want::Clean(stdout) => outcome.status == Status::Exit(0) && text == *stdout && error.is_empty(),
            Want::Says(status, stderr) => {
                outcome.status == Status::Exit(*status) && text.is_empty() && error == *stderr
            }
        };
        if accepted { Ok(()) } else { Err(format!("expected {self:?}\ngot      {}", outcome.describe())) }
    }
}

/// Compares the four ways with ld-linux: four checks. `configure` adds environment, directory and arguments to each run.
pub fn same(
    context: &Context,
    report: &mut Report,
    name: &str,
    program: &Path,
    want: Want,
    configure: impl Fn(Run) -> Run,
) {
    for (way, bind) in WAYS {
        let run = configure(Run::new(program)).way(way).bind(bind);
        let reference = configure(Run::new(program)).way(Way::Reference).bind(bind);
        report.check(format!("{name} ({})", label(way, bind)), compare(context, &run, &reference, want));
    }
}

/// One comparison: the reference must be what is wanted, and the run equal to it.
fn compare(context: &Context, run: &Run, reference: &Run, want: Want) -> Result<(), String> {
    let reference = reference.output(context).map_err(|error| format!("ld-linux: {error:#}"))?;
    want.accepts(&reference).map_err(|error| format!("ld-linux does not do what this case is about: {error}"))?;
    let outcome = run.output(context).map_err(|error| format!("{error:#}"))?;
    outcome.same_as(&reference)
}

/// Checks the four ways against a written expectation, where ld-linux is known to do something else.
pub fn written(
    context: &Context,
    report: &mut Report,
    name: &str,
    program: &Path,
    want: Want,
    configure: impl Fn(Run) -> Run,
) {
    for (way, bind) in WAYS {
        let run = configure(Run::new(program)).way(way).bind(bind);
        let result =
            run.output(context).map_err(|error| format!("{error:#}")).and_then(|outcome| want.accepts(&outcome));
        report.check(format!("{name} ({})", label(way, bind)), result);
    }
}

/// The way in words.
pub fn label(way: Way, bind: Bind) -> &'static str {
    match (way, bind) {
        (Way::Direct, Bind::Lazy) => "direct, lazy",
        (Way::Direct, Bind::Now) => "direct, bound",
        (Way::Interpreter, Bind::Lazy) => "interpreter, lazy",
        (Way::Interpreter, Bind::Now) => "interpreter, bound",
        (Way::Reference, _) => "ld-linux",
    }
}
