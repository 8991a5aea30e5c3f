//! `cargo xtask mutants SET`: deliberate breakages of the product, each of which a named test must catch. Owns the order of the work
//! and the verdicts. A mutant is a file of `tests/mutants/SET` (`mutant`), put into a copy of the workspace (`copy`), built and
//! tested there (`trial`). The workspace itself is never touched.

mod copy;
mod mutant;
mod trial;

use anyhow::{Context as _, bail};
use copy::Copy;
use indicatif::{ProgressBar, ProgressStyle};
use mutant::{Mutant, Test};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;
use trial::{Trial, Verdict};

/// Fewer deliberate breakages than this are no evidence for a set.
const ENOUGH: usize = 8;

/// Prints the mutants of a set.
pub fn list(set: &str) -> anyhow::Result<()> {
    for mutant in read(set, &[])? {
        println!("{:28} {}: {}", mutant.name, mutant.test, mutant.summary);
    }
    Ok(())
}

/// Tries the mutants named, or all; true if each one was caught by its test. An error if one does not apply or if a test does not
/// pass on the unbroken workspace: then nothing would be shown.
pub fn run(set: &str, names: &[String]) -> anyhow::Result<bool> {
    let mutants = read(set, names)?;
    let copy = Copy::make()?;
    for mutant in &mutants {
        mutant.apply(&copy.tree).with_context(|| format!("mutant {} does not apply", mutant.name))?;
    }
    let tests: BTreeSet<&Test> = mutants.iter().map(|mutant| &mutant.test).collect();
    let total = u64::try_from(tests.len() + mutants.len())?;
    // Drawn on standard error, and only if that is a terminal.
    let bar = ProgressBar::new(total).with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} {msg} {elapsed}")?);
    let mut trial = Trial::new(&copy);
    for test in tests {
        bar.set_message(format!("unbroken: {test}"));
        trial.passes_unbroken(test).with_context(|| format!("without a mutant: {test}"))?;
        bar.inc(1);
    }
    let mut wrong = 0;
    for mutant in &mutants {
        bar.set_message(mutant.name.clone());
        let start = Instant::now();
        let verdict = try_one(&copy, &mut trial, mutant)?;
        let word = match &verdict {
            Verdict::Caught => "caught",
            Verdict::Survived => "SURVIVED",
            Verdict::NotBuilt(_) => "NOT BUILT",
        };
        wrong += usize::from(!matches!(verdict, Verdict::Caught));
        bar.suspend(|| {
            println!("{word:9} {:28} {} ({:.0} s)", mutant.name, mutant.test, start.elapsed().as_secs_f64());
            if let Verdict::NotBuilt(said) = &verdict {
                println!("{said}");
            }
        });
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("mutants {set}: {} caught, {wrong} not caught", mutants.len() - wrong);
    Ok(wrong == 0)
}

/// One mutant: broken, tried, mended.
fn try_one(copy: &Copy, trial: &mut Trial<'_>, mutant: &Mutant) -> anyhow::Result<Verdict> {
    let changed = mutant.apply(&copy.tree)?;
    // From the copy, not from the workspace, which may have been edited since.
    let mut whole = Vec::new();
    for (path, text) in &changed {
        let file = copy.tree.join(path);
        whole.push((fs::read(&file)?, file.clone()));
        fs::write(&file, text)?;
    }
    let verdict = trial.verdict(&mutant.test);
    for (bytes, file) in whole {
        fs::write(file, bytes)?;
    }
    verdict.with_context(|| format!("mutant {}", mutant.name))
}

/// The mutants of a set, in the order of their names.
fn read(set: &str, names: &[String]) -> anyhow::Result<Vec<Mutant>> {
    let sets = crate::root().join("tests/mutants");
    let directory = sets.join(set);
    let files = fs::read_dir(&directory).with_context(|| format!("no set {set} in {}", sets.display()))?;
    let mut mutants = Vec::new();
    for file in files {
        let path = file?.path();
        mutants.push(read_one(&path).with_context(|| path.display().to_string())?);
    }
    mutants.sort_by(|one, other| one.name.cmp(&other.name));
    if mutants.len() < ENOUGH {
        bail!("only {} mutants in {}, fewer than {ENOUGH}", mutants.len(), directory.display());
    }
    for name in names {
        if !mutants.iter().any(|mutant| mutant.name == *name) {
            bail!("no mutant {name} in {} (see --list)", directory.display());
        }
    }
    mutants.retain(|mutant| names.is_empty() || names.contains(&mutant.name));
    Ok(mutants)
}

fn read_one(path: &Path) -> anyhow::Result<Mutant> {
    let name = path.file_name().context("a file has a name")?.to_string_lossy();
    Mutant::parse(&name, &fs::read_to_string(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_of_every_set_applies() {
        let mut wrong = Vec::new();
        for set in fs::read_dir(crate::root().join("tests/mutants")).unwrap() {
            let set = set.unwrap().file_name().into_string().unwrap();
            for mutant in read(&set, &[]).unwrap() {
                if let Err(error) = mutant.apply(&crate::root()) {
                    wrong.push(format!("{set}/{}: {error:#}", mutant.name));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn unknown_names_are_errors() {
        assert!(read("nonesuch", &[]).is_err());
        assert!(read("sigblock", &["nonesuch".to_owned()]).is_err());
    }
}
