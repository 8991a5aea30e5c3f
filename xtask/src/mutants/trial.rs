//! Building the copy and running one named test on it. Owns what counts as caught: the build succeeds and the test that is named
//! fails; a test that fails beside it proves nothing, nor does a build that fails.

use super::copy::Copy;
use super::mutant::Test;
use crate::artifact;
use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A unit test that runs longer hangs, which its mutant may well cause.
const UNIT_LIMIT: Duration = Duration::from_secs(180);
/// A suite ends by its own limits; this one is for a suite without.
const SUITE_LIMIT: Duration = Duration::from_secs(600);

/// What came of a mutant.
#[derive(Debug)]
pub enum Verdict {
    /// The named test failed.
    Caught,
    /// It passed, or did not run.
    Survived,
    /// The copy did not build: what the compiler said.
    NotBuilt(String),
}

/// The tests of one copy.
pub struct Trial<'a> {
    copy: &'a Copy,
    /// What each suite, or the part of it that a test needs, said on the unbroken copy.
    unbroken: BTreeMap<(String, String), String>,
}

/// What a run of a test came to.
enum Ending {
    Passed,
    Failed,
    Absent(String),
}

impl<'a> Trial<'a> {
    /// For this copy.
    pub fn new(copy: &'a Copy) -> Self {
        Self { copy, unbroken: BTreeMap::new() }
    }

    /// An error unless the copy builds and the test passes.
    pub fn passes_unbroken(&mut self, test: &Test) -> Result<()> {
        if let Test::Suite { suite, check } = test
            && let Some(said) = self.unbroken.get(&(suite.clone(), subject(check).to_owned()))
        {
            return must_pass(ending(said.clone(), test));
        }
        if let Err(said) = self.build(test)? {
            bail!("the workspace does not build\n{said}");
        }
        if let Test::Suite { suite, check } = test {
            let said = self.suite(suite, check)?;
            self.unbroken.insert((suite.clone(), subject(check).to_owned()), said.clone());
            return must_pass(ending(said, test));
        }
        must_pass(self.run(test)?)
    }

    /// Builds the copy as it is now and runs the test.
    pub fn verdict(&mut self, test: &Test) -> Result<Verdict> {
        if let Err(said) = self.build(test)? {
            return Ok(Verdict::NotBuilt(said));
        }
        Ok(match self.run(test)? {
            Ending::Failed => Verdict::Caught,
            Ending::Passed | Ending::Absent(_) => Verdict::Survived,
        })
    }

    /// Builds what the test runs; inside, what the compiler said if it fails.
    fn build(&self, test: &Test) -> Result<Result<(), String>> {
        let mut command = self.cargo();
        match test {
            Test::Unit { package, .. } => {
                command.args(["test", "--quiet", "--no-run", "--tests", "--package", package])
            }
            Test::Case { package, program, .. } => {
                command.args(["test", "--quiet", "--no-run", "--package", package, "--test", program])
            }
            Test::Suite { .. } => command.args(["build", "--quiet", "--release", "--package", "rtld-ld"]),
        };
        let output = command.output().context("cargo")?;
        if output.status.success() {
            return Ok(Ok(()));
        }
        Ok(Err(String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    fn run(&self, test: &Test) -> Result<Ending> {
        match test {
            Test::Unit { package, path } => {
                let mut command = self.cargo();
                command.args(["test", "--tests", "--package", package, "--", "--exact", path, "--test-threads=1"]);
                let Some(output) = output_within(&mut command, UNIT_LIMIT)? else { return Ok(Ending::Failed) };
                let said = text(&output);
                Ok(match output.status.success() {
                    true if said.contains(&format!("test {path} ... ok")) => Ending::Passed,
                    true => Ending::Absent(said),
                    // Nothing else ran: the test said so, or took its process with it.
                    false => Ending::Failed,
                })
            }
            Test::Case { package, program, name } => {
                let mut command = self.cargo();
                command.args(["test", "--package", package, "--test", program, "--", name]);
                let Some(output) = output_within(&mut command, UNIT_LIMIT)? else { return Ok(Ending::Failed) };
                let said = text(&output);
                let failed = format!("test {program}::{name} ... FAILED");
                Ok(if said.lines().any(|line| line.starts_with(&failed)) {
                    Ending::Failed
                } else if output.status.success() && said.contains("test result: ok. 1 passed") {
                    Ending::Passed
                } else {
                    Ending::Absent(said)
                })
            }
            Test::Suite { suite, check } => Ok(ending(self.suite(suite, check)?, test)),
        }
    }

    /// What a suite says about the copy's loader, or the part of it that has the check, where it can be had alone.
    fn suite(&self, suite: &str, check: &str) -> Result<String> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["test", suite, "--loader"]).arg(self.loader()?).env("RTLD_VERBOSE", "1");
        command.env("RTLD_SUBJECT", subject(check));
        let output = output_within(&mut command, SUITE_LIMIT)?;
        Ok(text(&output.with_context(|| format!("suite {suite} does not end"))?))
    }

    /// The loader of the copy, under the name it is installed by.
    fn loader(&self) -> Result<PathBuf> {
        let release = self.copy.target.join("release");
        let loader = release.join("ld-elf.so.1");
        artifact::install(&release.join("libld_elf.so"), &loader)?;
        Ok(loader)
    }

    fn cargo(&self) -> Command {
        let mut command = artifact::cargo_command();
        command.current_dir(&self.copy.tree).env("CARGO_TARGET_DIR", &self.copy.target);
        command
    }
}

/// What a check is about: what stands before the colon of its name.
fn subject(check: &str) -> &str {
    check.split_once(": ").map_or(check, |(subject, _)| subject)
}

/// What a suite's report says about the test.
fn ending(said: String, test: &Test) -> Ending {
    match test {
        Test::Suite { suite, check } if has_line(&said, "FAIL", suite, check) => Ending::Failed,
        Test::Suite { suite, check } if has_line(&said, "pass", suite, check) => Ending::Passed,
        _ => Ending::Absent(said),
    }
}

fn must_pass(ending: Ending) -> Result<()> {
    match ending {
        Ending::Passed => Ok(()),
        Ending::Failed => bail!("fails"),
        Ending::Absent(said) => bail!("there is no such test, or it was not reached\n{said}"),
    }
}

/// Whether the report of a suite has this check, passed or failed.
fn has_line(said: &str, word: &str, suite: &str, check: &str) -> bool {
    said.lines().any(|line| line == format!("{word} {suite}: {check}"))
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What a command left; nothing if it did not end in time and was killed with its process group.
fn output_within(command: &mut Command, limit: Duration) -> Result<Option<Output>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    let group = Pid::from_raw(i32::try_from(child.id())?);
    let reader = |pipe: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.map(|mut pipe| pipe.read_to_end(&mut bytes)).transpose().map(|_| bytes)
        })
    };
    let stdout = reader(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = reader(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() > end {
            break None;
        }
        thread::sleep(Duration::from_millis(20));
    };
    // What the command itself has left running holds the pipes open. None may be left: that is no error.
    let _ = killpg(group, Signal::SIGKILL);
    child.wait()?;
    let mut bytes = Vec::new();
    for reader in [stdout, stderr] {
        let read = reader.join().map_err(|_| anyhow::anyhow!("a reading thread has died"))?;
        bytes.push(read?);
    }
    let Some(status) = status else { return Ok(None) };
    ensure!(bytes.len() == 2, "two outputs");
    let (stderr, stdout) = (bytes.pop().unwrap_or_default(), bytes.pop().unwrap_or_default());
    Ok(Some(Output { status, stdout, stderr }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_found_by_its_whole_name() {
        let said = "pass s: one\nFAIL s: one and two\n     FAIL s: three\n";
        assert!(has_line(said, "pass", "s", "one"));
        assert!(has_line(said, "FAIL", "s", "one and two"));
        assert!(!has_line(said, "FAIL", "s", "one"));
        assert!(!has_line(said, "FAIL", "s", "three"));
    }

    #[test]
    fn what_does_not_end_is_killed_with_its_children() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & sleep 60"]);
        assert!(output_within(&mut command, Duration::from_millis(100)).unwrap().is_none());
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let output = output_within(&mut command, Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!((output.status.code(), text(&output).as_str()), (Some(3), "out\nerr\n"));
    }
}
