//! dlopen and dlclose of one library, of a closure of a hundred, and of three hundred that are kept until all are open, in programs
//! that either loader starts in turn. Owns the libraries' shape; times are taken in the program, by the monotonic clock, around the two calls.

use super::Settings;
use super::startup::{Comparison, Times, median};
use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use rtld_suites::harness::{Build, Context, Run, Status, Way};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Libraries of the large closure.
const CLOSURE: usize = 100;
/// Functions of each library.
const FUNCTIONS: usize = 20;
/// How many later libraries each one needs, if there are as many.
const NEEDED: usize = 3;
/// Libraries that are opened one by one and kept (`bench/dlopen_many.c`).
const KEPT: usize = 300;
/// Times that one process opens and closes.
const REPEATS: usize = 20;

/// Measures and prints; whether everything ran on our loader, and the report.
pub fn report(context: &Context, settings: &Settings<'_>) -> anyhow::Result<(bool, Value)> {
    let rounds = settings.rounds;
    let results = measure(context, rounds)?;
    println!(
        "time of dlopen and dlclose together, us, of {rounds} alternating rounds; ratio: median of ours / ld-linux's"
    );
    println!(
        "{:10} {:>12} {:>12} {:>12} {:>12} {:>8}",
        "libraries", "ours min", "ours median", "theirs min", "their median", "ratio"
    );
    let mut all = true;
    let mut list = Vec::new();
    for (case, result) in results {
        match result {
            Ok(times) => {
                let (ours, theirs) = (&times.ours, &times.theirs);
                println!(
                    "{case:10} {:12.1} {:12.1} {:12.1} {:12.1} {:8.3}",
                    ours.minimum, ours.median, theirs.minimum, theirs.median, times.ratio
                );
                list.push(json!({
                    "program": case,
                    "command": times.command,
                    "ours_us": { "minimum": ours.minimum, "median": ours.median },
                    "ld_linux_us": { "minimum": theirs.minimum, "median": theirs.median },
                    "ratio": times.ratio,
                }));
            }
            Err(error) => {
                all = false;
                println!("{case:10} did not run: {error:#}");
                list.push(json!({ "program": case, "error": format!("{error:#}") }));
            }
        }
    }
    Ok((all, Value::Array(list)))
}

/// Measures both closures in `rounds` processes of each loader, in turn.
fn measure(context: &Context, rounds: usize) -> anyhow::Result<Vec<(&'static str, anyhow::Result<Comparison>)>> {
    let program = Build::new("bench/dlopen.c").flag("-O2").build(context)?;
    let alone = library(context, "alone", 0, &[])?;
    let whole = closure(context)?;
    let many = Build::new("bench/dlopen_many.c").flag("-O2").build(context)?;
    let kept = kept(context)?;
    let total = u64::try_from(3 * rounds)?;
    let bar = ProgressBar::new(total).with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} {msg} {eta}")?);
    let mut results = Vec::new();
    for (name, program, file) in [("1", &program, &alone), ("100", &program, &whole), ("300 kept", &many, &kept)] {
        bar.set_message(name);
        results.push((name, compare(context, program, file, rounds, &bar)));
    }
    bar.finish_and_clear();
    Ok(results)
}

/// The directory of libraries that need nothing of one another.
fn kept(context: &Context) -> anyhow::Result<PathBuf> {
    let text = "static int own;\nint function(void) { return ++own; }\nint (*const table[])(void) = {function};\n";
    let first = Build::inline("kept/lib.c", text).shared().flag("-O1").output("kept/lib0.so").build(context)?;
    let directory = context.work.join("kept");
    for number in 1..KEPT {
        fs::copy(&first, directory.join(format!("lib{number}.so")))?;
    }
    Ok(directory)
}

/// The libraries from the last to the first; the first needs all others, directly or not.
fn closure(context: &Context) -> anyhow::Result<PathBuf> {
    let mut built: Vec<PathBuf> = Vec::new();
    for number in (0..CLOSURE).rev() {
        // `built` holds number + 1, number + 2, ... from its end.
        let needed: Vec<&Path> = built.iter().rev().take(NEEDED).map(PathBuf::as_path).collect();
        let file = library(context, "closure", number, &needed)?;
        built.push(file);
    }
    built.pop().context("a closure has a first library")
}

/// A library with functions, a table of pointers to its own and to those of the libraries it needs, and calls of the latter.
fn library(context: &Context, place: &str, number: usize, needed: &[&Path]) -> anyhow::Result<PathBuf> {
    let mut text = String::new();
    let others: Vec<usize> = (1..=needed.len()).map(|step| number + step).collect();
    for other in &others {
        for index in 0..FUNCTIONS {
            writeln!(text, "int f{other}_{index}(int);")?;
        }
    }
    for index in 0..FUNCTIONS {
        write!(text, "int f{number}_{index}(int x) {{ return x")?;
        for other in &others {
            write!(text, " + f{other}_{index}(x)")?;
        }
        writeln!(text, "; }}")?;
    }
    writeln!(text, "int (*const table{number}[])(int) = {{")?;
    for of in std::iter::once(&number).chain(&others) {
        for index in 0..FUNCTIONS {
            writeln!(text, "f{of}_{index},")?;
        }
    }
    writeln!(text, "}};")?;
    let build = Build::inline(&format!("{place}/{number}.c"), &text)
        .shared()
        .flags(&["-O1", "-Wl,--no-as-needed", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"])
        .flag(format!("-Wl,-soname,lib{place}{number}.so"))
        .output(format!("{place}/lib{place}{number}.so"));
    needed.iter().fold(build, |build, library| build.with(library)).build(context)
}

fn compare(
    context: &Context,
    program: &Path,
    file: &Path,
    rounds: usize,
    bar: &ProgressBar,
) -> anyhow::Result<Comparison> {
    let mut times = (Vec::new(), Vec::new());
    let mut ratios = Vec::new();
    for round in 0..rounds {
        // Who goes first alternates too.
        let pair = if round % 2 == 0 {
            let ours = once(context, program, file, Way::Interpreter)?;
            (ours, once(context, program, file, Way::Reference)?)
        } else {
            let theirs = once(context, program, file, Way::Reference)?;
            (once(context, program, file, Way::Interpreter)?, theirs)
        };
        ratios.push(median(pair.0.clone()) / median(pair.1.clone()));
        times.0.extend(pair.0);
        times.1.extend(pair.1);
        bar.inc(1);
    }
    Ok(Comparison {
        command: format!("{} {} {REPEATS}", program.display(), file.display()),
        ours: Times::of(times.0),
        theirs: Times::of(times.1),
        ratio: median(ratios),
        processor: f64::NAN,
    })
}

/// One process: the times it printed, microseconds.
fn once(context: &Context, program: &Path, file: &Path, way: Way) -> anyhow::Result<Vec<f64>> {
    let repeats = REPEATS.to_string();
    let outcome = Run::new(program).way(way).args([file.as_os_str(), repeats.as_ref()]).output(context)?;
    let times: Vec<f64> =
        outcome.text().lines().filter_map(|line| line.parse::<f64>().ok()).map(|time| time / 1000.0).collect();
    if outcome.status != Status::Exit(0) || times.len() != REPEATS {
        bail!("{}", outcome.describe());
    }
    Ok(times)
}
