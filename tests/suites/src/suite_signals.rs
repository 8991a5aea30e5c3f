//! Suite and soak `signals`: eight threads that do nothing but enter and leave sections, under a storm of signals from another
//! process. No signal may be lost, run inside a section, or come out of order; the same storm with sections switched off
//! must be seen running inside, or the detector is broken. Owns how long and what must be reached; the program counts.

use crate::figures::Figures;
use crate::harness::{Build, Context, Place, Report, Run, Way};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Signals a second that the sender aims at, and what it must reach in sum with its pauses.
const AIM: u64 = 60_000;
const RATE: u64 = 10_000;

/// What the soak must reach, and the seconds in which it does (many times over) unless others are asked for.
const SECTIONS: u64 = 100_000_000;
const SIGNALS: u64 = 100_000;
const SECONDS: u64 = 60;

/// Seconds past the asked-for ones in which the storm ends by itself if signals stay away.
const GRACE: u64 = 150;

/// One storm.
struct Storm {
    backend: &'static str,
    /// The handlers open sections themselves.
    enter: bool,
    seconds: u64,
    sections: u64,
    signals: u64,
    way: Way,
}

impl Storm {
    fn name(&self) -> String {
        format!("{}{}", self.backend, if self.enter { ", handlers enter" } else { "" })
    }
}

/// What the programs do in a guest of the kernel lab, where the emulated processor makes everything some hundred times slower:
/// signals a second aimed at, sections and signals of a storm, seconds. How many a second are reached says nothing there: a storm
/// goes on until it has them.
mod slow {
    pub const AIM: u64 = 2_000;
    pub const SECTIONS: u64 = 100_000;
    pub const SIGNALS: u64 = 2_000;
    pub const SECONDS: u64 = 20;
}

/// The programs, for a guest.
pub fn fixtures(context: &Context) -> Result<()> {
    crowd_program(context)?;
    churn_program(context)?;
    build(context)?;
    Ok(())
}

/// The storms in a guest.
pub fn run_in_guest(context: &Context, report: &mut Report) -> Result<()> {
    crowd(context, report)?;
    churn(context, report, 4)?;
    let program = build(context)?;
    let (sections, signals) = (slow::SECTIONS, slow::SIGNALS);
    for (backend, enter, seconds, way) in [
        ("kernel", false, slow::SECONDS, Way::Interpreter),
        ("kernel", true, slow::SECONDS, Way::Direct),
        ("off", false, slow::SECONDS / 4, Way::Interpreter),
    ] {
        let share = |whole: u64| whole * seconds / slow::SECONDS;
        let (sections, signals) = (share(sections), share(signals));
        storm(context, report, &program, &Storm { backend, enter, seconds, sections, signals, way });
    }
    Ok(())
}

/// Twenty seconds of it.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    crowd(context, report)?;
    churn(context, report, 1)?;
    let share = |seconds: u64| (SECTIONS / SECONDS * seconds, SIGNALS / SECONDS * seconds);
    let program = build(context)?;
    for (backend, enter, seconds, way) in [
        ("user", false, 8, Way::Interpreter),
        ("user", true, 5, Way::Direct),
        ("sigprocmask", false, 4, Way::Interpreter),
        ("off", false, 3, Way::Interpreter),
    ] {
        let (sections, signals) = share(seconds);
        // A section by sigprocmask costs a hundred times as much.
        let sections = if backend == "user" { sections } else { sections / 100 };
        storm(context, report, &program, &Storm { backend, enter, seconds, sections, signals, way });
    }
    Ok(())
}

/// The soak: the first storm lasts `--seconds`, the others half as long.
pub fn run_long(context: &Context, report: &mut Report) -> Result<()> {
    let seconds = context.seconds.unwrap_or(SECONDS);
    churn(context, report, seconds.div_ceil(4))?;
    let program = build(context)?;
    for (backend, enter, seconds, way) in [
        ("user", false, seconds, Way::Interpreter),
        ("user", true, seconds.div_ceil(2), Way::Direct),
        ("sigprocmask", false, seconds.div_ceil(2), Way::Interpreter),
        ("off", false, seconds.div_ceil(10), Way::Interpreter),
    ] {
        let (sections, signals) = if backend == "user" && !enter { (SECTIONS, SIGNALS) } else { (1_000_000, 10_000) };
        storm(context, report, &program, &Storm { backend, enter, seconds, sections, signals, way });
    }
    Ok(())
}

/// More numbers at once than come in a storm.
fn crowd(context: &Context, report: &mut Report) -> Result<()> {
    let program = crowd_program(context)?;
    for &backend in context.place.back_ends() {
        let name = format!("all numbers at once, {backend}");
        let run = Run::new(&program).back_end(backend);
        let Some(figures) = Figures::of(context, report, &name, &run) else { continue };
        figures.is(report, "backend", backend);
        figures.at_least(report, "numbers", 20);
        figures.is(report, "held", "1");
        figures.all_zero(report, &["lost", "inside", "disordered"]);
    }
    Ok(())
}

fn crowd_program(context: &Context) -> Result<PathBuf> {
    Build::new("sigblock/soak/crowd.c").flags(&["-O1", "-pthread"]).build(context)
}

fn churn_program(context: &Context) -> Result<PathBuf> {
    Build::new("sigblock/soak/churn.c").flags(&["-O1", "-pthread"]).build(context)
}

/// Threads that come and go: what one of them took is not lost at its end.
fn churn(context: &Context, report: &mut Report, seconds: u64) -> Result<()> {
    let program = churn_program(context)?;
    let most = if context.place == Place::Guest { 100 } else { 1 };
    for &backend in context.place.back_ends() {
        let name = format!("threads that come and go, {backend}");
        let held = if backend == "sigprocmask" { 0 } else { (10 * seconds / most).max(1) };
        let (threads, runs) = (100 * seconds / most, 1_000 * seconds / most);
        let arguments = [seconds, threads, runs, held].map(|number| number.to_string());
        let run = Run::new(&program).back_end(backend).args(arguments).limit(seconds + GRACE);
        let Some(figures) = Figures::of(context, report, &name, &run) else { continue };
        figures.is(report, "backend", backend);
        figures.all_zero(report, &["lost", "inside"]);
        figures.at_least(report, "threads", threads);
        figures.at_least(report, "runs", runs);
        if held > 0 {
            figures.at_least(report, "held", held);
        }
    }
    Ok(())
}

fn build(context: &Context) -> Result<PathBuf> {
    Build::new("sigblock/soak/storm.c")
        .source("sigblock/soak/sender.c")
        .source("sigblock/soak/receiver.c")
        .source("sigblock/soak/raised.c")
        .flags(&["-O2", "-pthread", "-Wl,-z,lazy"])
        .build(context)
}

fn storm(context: &Context, report: &mut Report, program: &Path, storm: &Storm) {
    let name = storm.name();
    let guest = context.place == Place::Guest;
    let aim = if guest { slow::AIM } else { AIM };
    let mut arguments = [storm.seconds, aim, storm.sections, storm.signals].map(|number| number.to_string()).to_vec();
    if storm.enter {
        arguments.push("enter".to_owned());
    }
    let run = Run::new(program).way(storm.way).back_end(storm.backend).args(arguments).limit(storm.seconds + GRACE);
    let Some(figures) = Figures::of(context, report, &name, &run) else { return };
    figures.is(report, "backend", storm.backend);
    figures.all_zero(report, &["lost", "surplus", "disordered", "disordered_any", "unanswered", "doubled", "stalled"]);
    figures.at_least(report, "sections", storm.sections);
    figures.at_least(report, "runs", storm.signals);
    if !guest {
        figures.at_least(report, "rate", RATE);
    }
    figures.at_least(report, "closings", 1);
    if storm.enter {
        figures.at_least(report, "handler_sections", storm.signals);
    }
    if storm.backend == "off" {
        // The detector's proof: the same handlers do find themselves inside where nothing holds them.
        figures.at_least(report, "inside", 1);
        figures.at_least(report, "torn", 1);
        return;
    }
    figures.all_zero(report, &["inside", "raised", "torn"]);
    if storm.backend != "sigprocmask" {
        figures.is(report, "raised_word", "0");
        // One section's end lets go whatever has come: on a slow machine that is more at a time.
        figures.at_least(report, "held", storm.signals / if guest { 400 } else { 100 });
    }
}
