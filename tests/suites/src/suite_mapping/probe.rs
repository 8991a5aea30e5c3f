//! The program `mapping/probe.c` and how checks are made with it: a hand-made `libodd.so` is put before it, it looks inside, and what it
//! prints is compared with ld-linux in the same run, with lines written down, or with both.
//!
//! May not know what any library is for.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::elf_writer::Library;
use crate::harness::{Bind, Build, Context, Outcome, Report, Run, Status, Way};

/// DT_SONAME of every library the probe looks into.
pub const SONAME: &str = "libodd.so";

/// Link-time address of `anchor` in [`Library::ordinary`].
pub const ANCHOR: u64 = 0x2800;

/// Both ways of starting a program, with words for check names.
pub const BOTH_WAYS: [(Way, &str); 2] = [(Way::Direct, "directly"), (Way::Interpreter, "as PT_INTERP")];

/// What the probe must print.
#[derive(Clone, Copy)]
pub enum Expected<'a> {
    /// What it prints under ld-linux.
    Reference,
    /// These lines, which ld-linux must give as well.
    Agreed(&'a [&'a str]),
    /// These lines; ld-linux does otherwise, for the reason given at the test.
    Ours(&'a [&'a str]),
    /// Exit code 127 and one line on standard error that holds all these texts.
    Refused(&'a [&'a str]),
}

/// The built probe.
pub struct Probe {
    context: Context,
    program: PathBuf,
}

impl Probe {
    /// Build it against a stand-in for the library.
    pub fn build(context: &Context) -> anyhow::Result<Self> {
        let stub = Build::inline("stub.c", "char anchor[8];")
            .shared()
            .flag(format!("-Wl,-soname,{SONAME}"))
            .output("stub/libodd.so")
            .build(context)?;
        // -fPIC: the library's data is reached through the GOT, never copied into the program. -rdynamic: the library may refer to the program.
        let program = Build::new("mapping/probe.c")
            .flags(&["-O1", "-fPIC", "-rdynamic"])
            .with(stub)
            .output("probe")
            .build(context)?;
        Ok(Self { context: context.clone(), program })
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Where the library of the check `name` is put.
    pub fn directory(&self, name: &str) -> PathBuf {
        // A colon or semicolon would end the entry in LD_LIBRARY_PATH.
        self.context.work.join(name.replace([' ', ':', ';'], "_"))
    }

    /// Run `commands` on the library in directory `name` of the suite's work directory.
    pub fn run(&self, name: &str, way: Way, anchor: u64, commands: &[&str]) -> anyhow::Result<Outcome> {
        let anchor = format!("{anchor:x}");
        let arguments = [anchor.as_str()].into_iter().chain(commands.iter().copied());
        Run::new(&self.program)
            .way(way)
            .bind(Bind::Lazy)
            .env("LD_LIBRARY_PATH", self.directory(name))
            .args(arguments)
            .output(&self.context)
    }

    /// Write `library` (its `anchor` at `anchor`) and check what `commands` print in both ways.
    pub fn check_at(
        &self,
        report: &mut Report,
        name: &str,
        library: &Library,
        anchor: u64,
        commands: &[&str],
        expected: Expected<'_>,
    ) -> anyhow::Result<()> {
        library.write(&self.directory(name).join(SONAME)).with_context(|| name.to_owned())?;
        self.check_present(report, name, anchor, commands, expected)
    }

    /// [`Probe::check_at`] for a library whose `anchor` is at [`ANCHOR`].
    pub fn check(
        &self,
        report: &mut Report,
        name: &str,
        library: &Library,
        commands: &[&str],
        expected: Expected<'_>,
    ) -> anyhow::Result<()> {
        self.check_at(report, name, library, ANCHOR, commands, expected)
    }

    /// The same for a library that is already there.
    pub fn check_present(
        &self,
        report: &mut Report,
        name: &str,
        anchor: u64,
        commands: &[&str],
        expected: Expected<'_>,
    ) -> anyhow::Result<()> {
        let reference = match expected {
            Expected::Reference | Expected::Agreed(_) => {
                let outcome = self.run(name, Way::Reference, anchor, commands)?;
                anyhow::ensure!(
                    outcome.status == Status::Exit(0),
                    "{name}: ld-linux does not run the fixture: {}",
                    outcome.describe()
                );
                if let Expected::Agreed(lines) = expected {
                    prints(&outcome, lines).map_err(|message| {
                        anyhow::anyhow!("{name}: ld-linux does not do what is written down: {message}")
                    })?;
                }
                Some(outcome)
            }
            Expected::Ours(_) | Expected::Refused(_) => None,
        };
        for (way, words) in BOTH_WAYS {
            let outcome = self.run(name, way, anchor, commands)?;
            let result = match (expected, &reference) {
                (Expected::Ours(lines), _) => prints(&outcome, lines),
                (Expected::Refused(texts), _) => refused(&outcome, texts),
                (_, Some(reference)) => outcome.same_as(reference),
                (_, None) => Err("no reference".into()),
            };
            report.check(format!("{name}, {words}"), result);
        }
        Ok(())
    }
}

/// Whether the run ended with 0, silently but for `lines` on standard output.
pub fn prints(outcome: &Outcome, lines: &[&str]) -> Result<(), String> {
    let want: String = lines.iter().map(|line| format!("{line}\n")).collect();
    if outcome.status == Status::Exit(0) && outcome.text() == want && outcome.stderr.is_empty() {
        Ok(())
    } else {
        Err(format!("expected status 0 and\n{want}got      {}", outcome.describe()))
    }
}

/// Whether the run ended with 127, nothing on standard output and one line of error that holds all `texts`.
pub fn refused(outcome: &Outcome, texts: &[&str]) -> Result<(), String> {
    let error = outcome.error_text();
    let one_line = error.ends_with('\n') && error.lines().count() == 1;
    if outcome.status == Status::Exit(127)
        && outcome.stdout.is_empty()
        && one_line
        && texts.iter().all(|text| error.contains(text))
    {
        Ok(())
    } else {
        Err(format!("expected exit 127 and one line of error with {texts:?}\ngot      {}", outcome.describe()))
    }
}
