//! Suite and soak `handlers`: signal handlers that iterate over the objects, bind symbols, throw and catch, while the code they
//! interrupt does the same and opens and closes plug-ins. Nothing may hang and no value may be wrong. The same for a program
//! that only iterates, which hangs under ld-linux. Owns the builds and what must be reached; the programs count.

use crate::figures::Figures;
use crate::harness::{Build, Compiler, Context, Place, Report, Run, Way};
use anyhow::{Context as _, Result, ensure};
use object::read::elf::{Dyn as _, ElfFile64};
use std::fs;
use std::path::{Path, PathBuf};

/// What the soak must reach in its seconds: handler runs that completed, runs that waited for a section's end, plug-ins opened
/// and closed. Other lengths reach their share.
const SECONDS: u64 = 60;
const RUNS: u64 = 50_000;
const DEFERRED: u64 = 1_000;
const CYCLES: u64 = 10_000;

/// How often the timer of the program that only iterates comes, a second.
const HERTZ: u64 = 20_000;

/// Seconds past the asked-for ones: the program's own watchdog needs 20 and a debugger.
const GRACE: u64 = 60;

/// A C++ library with its unwinder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unwinder {
    /// GCC with libstdc++ and libgcc, which finds tables by `_dl_find_object`.
    Libgcc,
    /// clang with libc++ and LLVM's libunwind, which finds them by `dl_iterate_phdr`.
    Libunwind,
}

impl Unwinder {
    fn name(self) -> &'static str {
        match self {
            Self::Libgcc => "libgcc",
            Self::Libunwind => "libunwind",
        }
    }

    /// The shared object that must be the first with an unwinder among the needed ones.
    fn library(self) -> &'static str {
        match self {
            Self::Libgcc => "libgcc_s.so.1",
            Self::Libunwind => "libunwind.so.1",
        }
    }

    fn build(self, source: &str) -> Build {
        let build = Build::new(format!("sigblock/soak/{source}")).flags(&["-O2", "-g", "-std=c++17", "-pthread"]);
        let build = build.flag("-Wl,-z,lazy");
        match self {
            Self::Libgcc => build,
            Self::Libunwind => build.compiler(Compiler::Clang).flags(&[
                "-stdlib=libc++",
                "--rtlib=compiler-rt",
                "--unwindlib=libunwind",
            ]),
        }
    }
}

/// In a guest of the kernel lab, whose emulated processor is some hundred times slower, what the programs must reach a second is one in
/// so many of what they must elsewhere: where a handler only iterates, and where it throws, which is more than a timer's
/// period there.
const SLOWER: u64 = 100;
const SLOWER_THROWING: u64 = 1_000;

/// The programs, for a guest.
pub fn fixtures(context: &Context) -> Result<()> {
    iterating_program(context)?;
    for unwinder in [Unwinder::Libunwind, Unwinder::Libgcc] {
        build(context, unwinder)?;
    }
    Ok(())
}

/// The same in a guest.
pub fn run_in_guest(context: &Context, report: &mut Report) -> Result<()> {
    iterating(context, report, 5)?;
    for unwinder in [Unwinder::Libunwind, Unwinder::Libgcc] {
        handling(context, report, unwinder, "kernel", 15)?;
    }
    Ok(())
}

/// Ten seconds of it.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    iterating(context, report, 2)?;
    handling(context, report, Unwinder::Libunwind, "user", 4)?;
    handling(context, report, Unwinder::Libgcc, "user", 2)?;
    handling(context, report, Unwinder::Libunwind, "sigprocmask", 2)?;
    handling(context, report, Unwinder::Libgcc, "sigprocmask", 2)
}

/// The soak: `--seconds`, or a minute, for each unwinder in user mode, half as long by sigprocmask.
pub fn run_long(context: &Context, report: &mut Report) -> Result<()> {
    let seconds = context.seconds.unwrap_or(SECONDS);
    iterating(context, report, seconds.div_ceil(6))?;
    for unwinder in [Unwinder::Libunwind, Unwinder::Libgcc] {
        handling(context, report, unwinder, "user", seconds)?;
        handling(context, report, unwinder, "sigprocmask", seconds.div_ceil(2))?;
    }
    Ok(())
}

/// A handler that only iterates.
fn iterating(context: &Context, report: &mut Report, seconds: u64) -> Result<()> {
    let program = iterating_program(context)?;
    let slower = if context.place == Place::Guest { SLOWER } else { 1 };
    for (&backend, way) in context.place.back_ends().iter().zip([Way::Interpreter, Way::Direct]) {
        let name = format!("iterating, {backend}");
        // The program asks for nothing but dl_iterate_phdr: the loader says which back end that was.
        let run = Run::new(&program).way(way).back_end(backend).env("LD_DEBUG", "sigblock");
        let run = run.args([seconds.to_string(), (HERTZ / slower).to_string()]);
        let Some(figures) = Figures::of(context, report, &name, &run.limit(seconds + GRACE)) else { continue };
        figures.is(report, "backend", backend);
        figures.all_zero(report, &["wrong"]);
        figures.at_least(report, "objects", 3);
        figures.at_least(report, "sections", figures.number("iterations").unwrap_or(u64::MAX));
        if backend != "sigprocmask" {
            figures.at_least(report, "held", 100 * seconds / slower);
        }
        figures.at_least(report, "runs", 1_000 * seconds / slower);
    }
    Ok(())
}

fn iterating_program(context: &Context) -> Result<PathBuf> {
    Build::new("sigblock/soak/iterate.c").flag("-O1").build(context)
}

fn handling(context: &Context, report: &mut Report, unwinder: Unwinder, backend: &str, seconds: u64) -> Result<()> {
    let (program, directory) = build(context, unwinder)?;
    let name = format!("{}, {backend}, {seconds} s", unwinder.name());
    let slower = if context.place == Place::Guest { SLOWER_THROWING } else { 1 };
    let share = |whole: u64| whole * seconds / SECONDS / slower;
    let way = if unwinder == Unwinder::Libgcc { Way::Direct } else { Way::Interpreter };
    let run = Run::new(&program)
        .way(way)
        .back_end(backend)
        .args([seconds.to_string().as_ref(), directory.as_os_str(), slower.to_string().as_ref()])
        .limit(seconds + GRACE);
    let Some(figures) = Figures::of(context, report, &name, &run) else { return Ok(()) };
    figures.is(report, "backend", backend);
    let wrong = ["unfinished", "wrong_bound", "wrong_caught", "wrong_objects", "wrong_plug"];
    figures.all_zero(report, &wrong);
    figures.at_least(report, "runs", share(RUNS));
    figures.at_least(report, "least_runs", share(RUNS) / 10);
    figures.at_least(report, "cycles", share(CYCLES));
    figures.at_least(report, "libraries", 2);
    // Every run iterates, throws and catches; nearly every one finds symbols to bind.
    figures.at_least(report, "handler_bound", share(RUNS) / 2);
    figures.at_least(report, "handler_caught", share(RUNS));
    figures.at_least(report, "handler_iterations", share(RUNS));
    figures.at_least(report, "main_bound", share(RUNS));
    if backend != "sigprocmask" {
        figures.at_least(report, "held", share(DEFERRED).max(1));
    }
    Ok(())
}

/// The program and the directory of its libraries: one of each for each of its two threads.
fn build(context: &Context, unwinder: Unwinder) -> Result<(PathBuf, PathBuf)> {
    let name = unwinder.name();
    let directory = context.work.join(name);
    let program = directory.join("handlers");
    if program.exists() {
        return Ok((program, directory));
    }
    let many = Build::new("sigblock/soak/many.S").shared().output(format!("{name}/libmany.so")).build(context)?;
    let callers = Build::new("sigblock/soak/callers.S").shared().flag("-Wl,-z,lazy").with(&many);
    let callers = callers.output(format!("{name}/libcallers-0.so")).build(context)?;
    let plug = unwinder.build("plug.cpp").shared().with(&many);
    let plug = plug.output(format!("{name}/libplug-0.so")).build(context)?;
    fs::copy(callers, directory.join("libcallers-1.so"))?;
    fs::copy(plug, directory.join("libplug-1.so"))?;
    let program = unwinder
        .build("handlers.cpp")
        .source("sigblock/soak/pool.cpp")
        .flag("-Wl,--no-as-needed")
        .with(&many)
        .output(format!("{name}/handlers"))
        .build(context)?;
    let first = first_unwinder(&program)?;
    ensure!(first == unwinder.library(), "{} unwinds by {first}, not by {}", program.display(), unwinder.library());
    Ok((program, directory))
}

/// The first needed library that is an unwinder.
fn first_unwinder(program: &Path) -> Result<String> {
    let bytes = fs::read(program)?;
    let file: ElfFile64<'_, object::Endianness> = ElfFile64::parse(&*bytes)?;
    let (endian, sections) = (file.endian(), file.elf_section_table());
    let (entries, strings) = sections.dynamic(endian, &*bytes)?.context("no dynamic section")?;
    let strings = sections.strings(endian, &*bytes, strings)?;
    let needed = entries.iter().filter(|entry| entry.tag32(endian) == Some(object::elf::DT_NEEDED));
    let mut names = needed.filter_map(|entry| entry.string(endian, strings).ok());
    let is_unwinder = |name: &&[u8]| name.starts_with(b"libgcc_s") || name.starts_with(b"libunwind");
    let first = names.find(is_unwinder).context("no unwinder among the needed libraries")?;
    Ok(String::from_utf8_lossy(first).into_owned())
}
