//! Suite `processor`: what the C library knows of the processor (`struct cpu_features`, whole, but for the sizes of XSAVE's area) is what
//! it knows after a start under ld-linux: on this machine, with tunables, and on recorded processors, which a tracer pretends by
//! answering CPUID and XGETBV in both loaders. Owns what is compared, and how often our loader may ask.
//!
//! Subleaves of leaf 13 that a published dump lacks stand in the records as others of the same kind have them.

mod pretend;
mod record;
mod seen;

use crate::harness::{Bind, Build, Context, Report, Run, Way};
use pretend::{Questions, Told};
use record::Record;
use std::collections::BTreeSet;

/// Records whose processor has no rules in our loader: ld-linux's resolver is left to do its work.
const LEFT: [&str; 2] = ["core-2-duo", "other-vendor"];
/// The release of glibc that our loader has rules for.
const WITH_RULES: &str = "2.36";
/// How often our loader may ask a processor that has rules.
const MOST: usize = 20;
/// Changed records of each recorded processor.
const CHANGED: u64 = 12;

/// Settings of the processor's tunables; those up to 2.36 are all understood by later releases too.
const TUNABLES: [&str; 6] = [
    "glibc.cpu.hwcaps=-AVX2,-ERMS,Prefer_ERMS",
    "glibc.cpu.hwcaps=-XSAVE,-OSXSAVE",
    "glibc.cpu.x86_non_temporal_threshold=0x100000",
    "glibc.cpu.x86_rep_movsb_threshold=8000:glibc.cpu.x86_rep_stosb_threshold=4096",
    "glibc.cpu.x86_data_cache_size=65536:glibc.cpu.x86_shared_cache_size=2000000",
    "glibc.malloc.perturb=1",
];

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let ending = Build::new("bench/startexit.c").shared();
    let ending = ending.flags(&["-O2", "-nostdlib", "-Wl,-z,initfirst"]).build(context)?;
    let program = Build::new("bench/empty.c").build(context)?;
    // Bound at start: at a first call ld-linux would save more state than a pretended processor has, and it made room for.
    let run = Run::new(&program).bind(Bind::Now).env("LD_PRELOAD", &ending);
    let questions = Questions::find(context)?;
    let release = seen::release(&context.reference)?;
    let pair = |run: &Run, record: Option<&Record>| -> anyhow::Result<(Told, Told)> {
        let ours = pretend::run(context, run, Way::Interpreter, &questions, record)?;
        Ok((ours, pretend::run(context, run, Way::Reference, &questions, record)?))
    };
    // Without a pretence, and with one of this very machine.
    let (ours, theirs) = pair(&run, None)?;
    let (plain, theirs) = (ours.seen.without_identifier(), theirs.seen.without_identifier());
    report.equal("this machine as it is", &plain, &theirs);
    let machine = Record::of_this_machine();
    let (pretended, _) = pair(&run, Some(&machine))?;
    report.equal("pretending this machine changes nothing", pretended.seen.without_identifier(), plain.clone());
    let mut silent = 0;
    for setting in TUNABLES {
        let (ours, theirs) = pair(&run.clone().env("GLIBC_TUNABLES", setting), None)?;
        report.equal(setting, ours.seen.without_identifier(), theirs.seen.clone().without_identifier());
        silent += usize::from(theirs.seen.without_identifier() == plain);
    }
    report.equal("settings without effect under ld-linux (malloc's)", silent, 1);
    let mut records = vec![machine];
    let directory = context.programs.join("processor");
    let mut files: Vec<_> =
        std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    files.sort();
    for file in &files {
        records.push(Record::read(file)?);
    }
    for record in &records {
        let (ours, theirs) = pair(&run, Some(record))?;
        report.equal(&record.name, &ours.seen, &theirs.seen);
        let distinct = |told: &Told| told.asked.iter().collect::<BTreeSet<_>>().len();
        report.note(format!(
            "{}: CPUID executed {} times, {} distinct (ld-linux {}, {} distinct)",
            record.name,
            ours.asked.len(),
            distinct(&ours),
            theirs.asked.len(),
            distinct(&theirs)
        ));
        let asked = (ours.asked.len(), theirs.asked.len());
        if release == WITH_RULES && record.has_known_vendor() && !LEFT.contains(&record.name.as_str()) {
            report.equal(format!("{}: no leaf is asked twice", record.name), distinct(&ours), asked.0);
            let name = format!("{}: at most {MOST} leaves are asked, and fewer than under ld-linux", record.name);
            let result = if asked.0 <= MOST && asked.0 < asked.1 { Ok(()) } else { Err(format!("got {asked:?}")) };
            report.check(name, result);
        } else {
            let result = if asked.0 >= asked.1 { Ok(()) } else { Err(format!("got {asked:?}")) };
            report.check(format!("{}: ld-linux's resolver asks", record.name), result);
        }
    }
    let mut seen = Vec::new();
    // Not of this machine: the changed processors are the same everywhere.
    for record in records.iter().skip(1).filter(|record| !LEFT.contains(&record.name.as_str())) {
        for number in 0..CHANGED {
            let record = record.changed(number);
            let (ours, theirs) = pair(&run, Some(&record))?;
            report.equal(&record.name, &ours.seen, &theirs.seen);
            seen.push(theirs.seen.words);
        }
    }
    let count = seen.len();
    let different = seen.into_iter().collect::<BTreeSet<_>>().len();
    report.equal("changed processors are different processors", different, count);
    Ok(())
}
