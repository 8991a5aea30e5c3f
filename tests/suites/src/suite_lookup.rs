//! Suite `lookup`: the walk over the scope and the table of names give every slot the same value, and the one that ld-linux
//! gives it; a slot that is not bound lazily has its last value when the first constructor runs. Owns the sets of objects and
//! the comparison; what is in the slots is told from inside by `lookup/slots.c`.

mod generated;

use crate::harness::{Bind, Build, Context, Report, Run, Way};
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Programs of the distribution with many objects and names.
const PROGRAMS: [&str; 4] = ["/usr/bin/gdb", "/usr/bin/clang", "/usr/bin/python3", "/usr/bin/git"];

/// The libraries in which our functions take the place of definitions.
const SYSTEM: [&str; 4] = ["libc.so.6", "ld-linux-x86-64.so.2", "libdl.so.2", "libpthread.so.0"];

/// Values by what they are in: object, type, symbol, offset.
type Slots = BTreeMap<String, String>;

/// One process whose slots are looked at.
struct Subject<'a> {
    program: &'a Path,
    preload: &'a Path,
    /// What the preload opens.
    open: &'a str,
}

impl Subject<'_> {
    /// The slots, and what the loader said on standard error.
    fn slots(&self, context: &Context, way: Way, bind: Bind, lookup: &str) -> Result<(Slots, String)> {
        let file = context.work.join("slots");
        let _ = fs::remove_file(&file);
        let outcome = Run::new(self.program)
            .way(way)
            .bind(bind)
            .env("LD_PRELOAD", self.preload)
            .env("LD_LOOKUP", lookup)
            .env("LD_DEBUG", if way == Way::Reference { "" } else { "statistics" })
            .env("SLOTS", &file)
            .env("OPEN", self.open)
            .output(context)?;
        outcome.succeeded().map_err(anyhow::Error::msg)?;
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let pairs = text.lines().filter_map(|line| line.split_once(" = "));
        Ok((pairs.map(|(slot, value)| (slot.to_owned(), value.to_owned())).collect(), outcome.error_text()))
    }
}

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    let preload = Build::new("lookup/slots.c").shared().flags(&["-O1", "-Wl,-z,initfirst"]);
    let preload = preload.output("slots.so").build(context)?;
    for set in generated::sets(context)? {
        let subject = Subject { program: &set.program, preload: &preload, open: &set.open };
        compare(context, report, &set.name, &subject)?;
    }
    for program in PROGRAMS {
        let file = PathBuf::from(program).canonicalize().with_context(|| program.to_owned())?;
        compare(context, report, program, &Subject { program: &file, preload: &preload, open: "" })?;
    }
    rule(context, report, &preload)
}

/// Both ways and ld-linux give every slot the same value.
fn compare(context: &Context, report: &mut Report, name: &str, subject: &Subject) -> Result<()> {
    let (walked, said) = subject.slots(context, Way::Interpreter, Bind::Now, "scope")?;
    report.equal(format!("{name}: LD_LOOKUP=scope walks"), mode(&said), Some("scope".to_owned()));
    let (looked_up, said) = subject.slots(context, Way::Interpreter, Bind::Now, "table")?;
    report.equal(format!("{name}: LD_LOOKUP=table makes a table"), mode(&said), Some("table".to_owned()));
    let (theirs, _) = subject.slots(context, Way::Reference, Bind::Now, "")?;
    ensure!(walked.len() > 100, "{name}: only {} slots", walked.len());
    report.check(format!("{name}: {} slots, table and walk", walked.len()), differences(&walked, &looked_up));
    report.check(format!("{name}: ld-linux and the table"), differences(&shared(&theirs), &shared(&looked_up)));
    for lookup in ["scope", "table"] {
        let (lazy, _) = subject.slots(context, Way::Interpreter, Bind::Lazy, lookup)?;
        let unbound = |slot: &str, value: &str| slot.contains(" JUMP_SLOT ") && in_itself(slot, value);
        let early: Slots = lazy.into_iter().filter(|(slot, value)| !unbound(slot, value)).collect();
        let last = early.keys().filter_map(|slot| Some((slot.clone(), walked.get(slot)?.clone()))).collect();
        report.check(format!("{name}: first constructor, {lookup}"), differences(&last, &early));
    }
    Ok(())
}

/// Whether a slot leads into the object that it lies in: its own PLT, if it is a slot of a lazily bound call.
fn in_itself(slot: &str, value: &str) -> bool {
    slot.split(' ').next().is_some_and(|object| value.starts_with(&format!("{object}+")))
}

/// The slots that must be as under ld-linux: not those of the loaders themselves, nor what our functions replace there, nor
/// where thread-local storage lies.
fn shared(slots: &Slots) -> Slots {
    let system = |text: &str| SYSTEM.iter().any(|name| text.starts_with(name));
    let kept = slots.iter().filter(|(slot, value)| {
        let own_layout = slot.contains(" TPOFF64 ") || slot.contains(" DTPMOD64 ");
        !system(slot) && !system(value) && !value.starts_with("ld+") && !slot.starts_with("linux-vdso") && !own_layout
    });
    kept.map(|(slot, value)| (slot.clone(), value.clone())).collect()
}

/// The first few slots that are not equal.
fn differences(want: &Slots, got: &Slots) -> Result<(), String> {
    let mut lines = Vec::new();
    for slot in want.keys().chain(got.keys().filter(|slot| !want.contains_key(*slot))) {
        if want.get(slot) != got.get(slot) {
            lines.push(format!("{slot}: expected {:?}, got {:?}", want.get(slot), got.get(slot)));
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let count = lines.len();
    lines.truncate(8);
    Err(format!("{count} slots differ:\n{}", lines.join("\n")))
}

/// The mode of the line that LD_DEBUG=statistics asks for.
fn mode(said: &str) -> Option<String> {
    let words = said.lines().find(|line| line.contains(": lookup: "))?.split(' ');
    words.filter_map(|word| word.strip_prefix("mode=")).next().map(str::to_owned)
}

/// What is chosen by itself: the walk for a few objects, the table where many names are looked up in many; and what is said
/// about a value that is none.
fn rule(context: &Context, report: &mut Report, preload: &Path) -> Result<()> {
    let many = generated::many(context)?;
    for (program, want) in [(Path::new("/usr/bin/git"), "scope"), (&many, "table")] {
        let subject = Subject { program, preload, open: "" };
        for lookup in ["auto", "TABLE"] {
            let (_, said) = subject.slots(context, Way::Interpreter, Bind::Lazy, lookup)?;
            let name = format!("{} under LD_LOOKUP={lookup}", program.display());
            report.equal(name.clone(), mode(&said).as_deref(), Some(want));
            let warned = said.contains("warning: LD_LOOKUP=`TABLE' unknown; expected auto, scope or table\n");
            report.equal(format!("{name}: a warning"), warned, lookup == "TABLE");
        }
    }
    Ok(())
}
