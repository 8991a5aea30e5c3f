//! What a run left: its status and everything it wrote, with the comparisons that suites make and their words for a failure.

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// By exit, with this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It ran longer than the limit and was killed.
    TimedOut,
}

/// What a run left.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Everything written to standard output.
    pub stdout: Vec<u8>,
    /// Everything written to standard error.
    pub stderr: Vec<u8>,
    /// The command line, for reports.
    pub command: String,
}

impl Outcome {
    /// Standard output as text, ill-formed bytes replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text, ill-formed bytes replaced.
    pub fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Status, both outputs and the command line, for a failing check.
    pub fn describe(&self) -> String {
        format!(
            "{:?}\nstdout: {}\nstderr: {}\ncommand: {}",
            self.status,
            excerpt(&self.stdout),
            excerpt(&self.stderr),
            self.command
        )
    }

    /// Whether status and both outputs are those of `want`; a failure says where they differ.
    pub fn same_as(&self, want: &Self) -> Result<(), String> {
        if self.status == want.status && self.stdout == want.stdout && self.stderr == want.stderr {
            return Ok(());
        }
        Err(format!("expected {}\ngot      {}", want.describe(), self.describe()))
    }

    /// Whether it ended by exit 0; a failure describes it.
    pub fn succeeded(&self) -> Result<(), String> {
        if self.status == Status::Exit(0) {
            Ok(())
        } else {
            Err(format!("expected Exit(0)\ngot      {}", self.describe()))
        }
    }
}

/// At most 2000 characters of an output.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut short: String = text.trim_end().chars().take(2000).collect();
    if short.len() < text.trim_end().len() {
        short.push_str(" ...");
    }
    short
}
