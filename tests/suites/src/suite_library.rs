//! Suite and soak `library`: libsigblock without our loader. Programs run under ld-linux with it as they do without, their
//! calls of the loader being sections; a thread library that is built on it passes a storm of signals; a handler that
//! iterates does not hang, as it does without. Under our loader it leaves everything to that. Owns what must be reached; the
//! programs count. The facts of the files are in `file`, what the document says of tests in `document`.

mod document;
mod file;

use crate::figures::Figures;
use crate::harness::{Build, Compiler, Context, Outcome, Place, Report, Run, Status, Way};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How often the timer comes whose handler iterates, a second.
const HERTZ: u64 = 1_000;
/// How long a soak's parts last unless another time is asked for.
const SECONDS: u64 = 60;
/// Seconds past the asked-for ones in which a program ends by itself.
const GRACE: u64 = 60;
/// What the thread library must do in a guest of the kernel lab, whose processor is some hundred times slower, is one in so many.
const SLOWER: u64 = 100;

/// The two files, in the suite's directory.
struct Library {
    shared: PathBuf,
    archive: PathBuf,
}

/// About a minute.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    let library = Library::copy(context)?;
    file::check(context, report, &library)?;
    document::check(context, report)?;
    aside(context, report, &library)?;
    opened(context, report, &library)?;
    early(context, report, &library)?;
    secure(context, report, &library)?;
    weak(context, report, &library)?;
    programs(context, report, &library)?;
    iterating(context, report, &library, 10)?;
    storm(context, report, &library, 3)
}

/// The soak: `--seconds`, or a minute, for each part.
pub fn run_long(context: &Context, report: &mut Report) -> Result<()> {
    let library = Library::copy(context)?;
    let seconds = context.seconds.unwrap_or(SECONDS);
    iterating(context, report, &library, seconds)?;
    storm(context, report, &library, seconds)
}

impl Library {
    /// Copies what was built with the loader, or, for a loader from elsewhere, with this program.
    fn copy(context: &Context) -> Result<Library> {
        let built = std::env::current_exe()?.with_file_name("../release");
        let places = [context.artifact.with_file_name(""), built];
        let Some(place) = places.iter().find(|place| place.join("libsigblock.so").exists()) else {
            bail!("no libsigblock.so in any of {places:?}: cargo xtask build makes it");
        };
        let copy = |name: &str| -> Result<PathBuf> {
            let to = context.work.join(name);
            fs::copy(place.join(name), &to).with_context(|| name.to_owned())?;
            Ok(to)
        };
        Ok(Library { shared: copy("libsigblock.so")?, archive: copy("libsigblock.a")? })
    }

    /// A program that is linked with the shared object.
    fn linked(&self, context: &Context, source: &str) -> Build {
        Build::new(format!("sigblock/library/{source}"))
            .flags(&["-O2", "-pthread"])
            .flag(format!("-I{}", context.root.join("sigblock/include").display()))
            .flag(format!("-Wl,-rpath,{}", context.work.display()))
            .with(&self.shared)
    }

    /// The run with the library preloaded and its line at exit asked for.
    fn preloaded(&self, run: &Run, backend: &str) -> Run {
        run.clone().env("LD_PRELOAD", &self.shared).env("LD_SIGBLOCK", backend).env("SIGBLOCK_STATISTICS", "1")
    }
}

/// A program that is linked with it, under ld-linux and under our loader, which then makes the sections.
fn aside(context: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let program = library.linked(context, "aside.c").build(context)?;
    for (way, backend) in [
        (Way::Reference, "user"),
        (Way::Reference, "sigprocmask"),
        (Way::Direct, "user"),
        (Way::Interpreter, "sigprocmask"),
    ] {
        let name = format!("linked, {way:?}, {backend}");
        let run = Run::new(&program).way(way).env("LD_SIGBLOCK", backend);
        let Some(figures) = Figures::of(context, report, &name, &run) else { continue };
        let ours = way != Way::Reference;
        for (key, want) in [
            ("library", "1"),
            ("inside", if backend == "user" { "0x10" } else { "0x11" }),
            ("early", "0"),
            ("late", "1"),
            ("in_handler", "0"),
            ("read_back", "1"),
            ("word", "0"),
            ("backend", backend),
            ("loaders", if ours { "1" } else { "0" }),
            ("first", "1"),
            ("second", "1"),
            ("closed", "0"),
            ("released", "0"),
        ] {
            figures.is(report, key, want);
        }
        if !ours {
            // libc's own sigaction would set handlers past us.
            figures.is(report, "by_handle", "1");
        }
    }
    // Two counts of the same sections, or two lines, would say that it did not step aside.
    let both = Run::new(&program).way(Way::Direct).env("SIGBLOCK_STATISTICS", "1").env("LD_DEBUG", "sigblock");
    let outcome = both.env("LD_SIGBLOCK", "user").output(context)?;
    let lines = outcome.error_text().lines().filter(|line| line.starts_with("sigblock: backend=user")).count();
    report.equal("under our loader one line is told", lines, 1);
    let wrong = Run::new(&program).way(Way::Reference).env("LD_SIGBLOCK", "maybe").output(context)?;
    let want = "LD_SIGBLOCK=maybe: expected auto, kernel, user, sigprocmask or off; using auto\n";
    report.equal("another value: one line", wrong.error_text(), format!("{}: {want}", program.display()));
    Ok(())
}

/// Opened by a program that has set its handlers by then.
fn opened(context: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let program = Build::new("sigblock/library/opened.c").build(context)?;
    for (asked, line) in [("auto", ""), ("user", ": LD_SIGBLOCK=user: libsigblock came too late; using sigprocmask\n")]
    {
        let run = Run::new(&program).way(Way::Reference).env("LD_SIGBLOCK", asked).args([&library.shared]);
        let outcome = run.output(context)?;
        let got = (outcome.text(), outcome.error_text().replace(&program.display().to_string(), ""));
        let want = "backend=sigprocmask inside=0 after=1 released=0\n";
        report.equal(format!("opened late, LD_SIGBLOCK={asked}"), got, (want.to_owned(), line.to_owned()));
    }
    Ok(())
}

/// Called before its own constructor has run, by that of another library.
fn early(context: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let other = Build::new("sigblock/library/early.c").shared().build(context)?;
    let program = Build::inline("empty.c", "int main(void) { return 0; }\n")
        .flags(&["-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"])
        .with(&other)
        .build(context)?;
    for backend in ["user", "sigprocmask"] {
        let run = library.preloaded(&Run::new(&program).way(Way::Reference), backend);
        let outcome = run.env("LD_DEBUG", "files").output(context)?;
        let told = outcome.error_text();
        let begun = |name: &str| told.lines().position(|line| line.contains("calling init") && line.ends_with(name));
        let order = (begun("/libearly.so"), begun("/libsigblock.so"));
        report.equal(
            format!("early: comes first ({backend})"),
            matches!(order, (Some(one), Some(two)) if one < two),
            true,
        );
        let want = "early: inside=0 after=1 read_back=1\n";
        report.equal(format!("early: has sections ({backend})"), outcome.text().as_str(), want);
    }
    Ok(())
}

/// A set-uid program does not listen to the environment.
fn secure(context: &Context, report: &mut Report, library: &Library) -> Result<()> {
    const NOBODY: u32 = 65534;
    let program = library.linked(context, "aside.c").output("set-uid").build(context)?;
    let run = |file: &Path| {
        let run = Run::new(file).way(Way::Reference).env("LD_SIGBLOCK", "off").env("SIGBLOCK_STATISTICS", "1");
        run.user(NOBODY, NOBODY).output(context)
    };
    let plain = run(&program)?;
    report.equal("a plain program listens", plain.text().contains("backend=off"), true);
    report.equal("... and tells", plain.error_text().contains("sigblock: backend=off"), true);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755))?;
    let secure = run(&program)?;
    let name = "a set-uid program has a back end that holds signals";
    report.equal(name, secure.text().contains("early=0 late=1"), true);
    report.equal("... and says nothing", secure.error_text(), "");
    Ok(())
}

/// What only a loader can do: `docs/signals.md` has the list.
fn weak(context: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let plugin = |name: &str| {
        Build::new("sigblock/library/constructed.c").shared().output(format!("lib{name}.so")).build(context)
    };
    let (path, _) = (plugin("path")?, plugin("name")?);
    let program = library.linked(context, "weak.c").flags(&["-rdynamic", "-Wl,-z,lazy"]).build(context)?;
    for (way, want) in [
        (
            Way::Reference,
            "bound=0 constructor_by_path=0 constructor_by_name=1 inside_by_dlvsym=1 answers=0 goes_on=0\n",
        ),
        (
            Way::Interpreter,
            "bound=1 constructor_by_path=1 constructor_by_name=1 inside_by_dlvsym=0 answers=1 goes_on=1\n",
        ),
    ] {
        let run = Run::new(&program).way(way).env("LD_SIGBLOCK", "user").env("SIGBLOCK_STATISTICS", "1");
        let run = run.env("LD_DEBUG", "sigblock").args([path.as_os_str(), "libname.so".as_ref()]);
        let outcome = run.output(context)?;
        report.equal(format!("what only a loader can do ({way:?})"), outcome.text().as_str(), want);
    }
    Ok(())
}

/// One program that runs with and without.
struct Program {
    name: &'static str,
    run: Run,
    backends: &'static [&'static str],
    sections: u64,
}

fn programs(context: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let throw = Build::new("sigblock/library/throw.cpp").flags(&["-O1", "-pthread"]);
    let libgcc = throw.clone().output("throw-libgcc").build(context)?;
    let llvm = ["-stdlib=libc++", "--rtlib=compiler-rt", "--unwindlib=libunwind"];
    let libunwind = throw.compiler(Compiler::Clang).flags(&llvm).output("throw-libunwind").build(context)?;
    let python = "import ctypes, threading, subprocess\nt = threading.Thread(target=lambda: print(ctypes.CDLL(None).getpid() > 0))\n\
                  t.start(); t.join()\nprint(subprocess.run(['true']).returncode)";
    let java = context.programs.join("system/Hello.java");
    let both = &["user", "sigprocmask"];
    for program in [
        Program {
            name: "python3",
            run: Run::new("/usr/bin/python3").args(["-S", "-c", python]),
            backends: both,
            sections: 2,
        },
        Program {
            name: "C++ with libgcc",
            run: Run::new(libgcc).args(["20000", "through"]),
            backends: both,
            sections: 20_000,
        },
        // Each frame is looked for by dl_iterate_phdr.
        Program {
            name: "C++ with LLVM's libunwind",
            run: Run::new(libunwind).args(["2000"]),
            backends: both,
            sections: 20_000,
        },
        Program { name: "java", run: Run::new("/usr/bin/java").args([java]), backends: &["user"], sections: 10 },
    ] {
        let run = program.run.clone().way(Way::Reference).limit(120);
        let without = run.output(context)?;
        report.equal(format!("{}: runs without", program.name), without.status, Status::Exit(0));
        for backend in program.backends {
            let with = library.preloaded(&run, backend).output(context);
            let result = with.map_err(|error| format!("{error:#}"));
            let result = result.and_then(|with| agrees(&with, &without, backend, program.sections));
            report.check(format!("{}: the same with {backend}", program.name), result);
        }
    }
    Ok(())
}

/// Whether a program did the same with the library as without, in at least so many sections.
fn agrees(with: &Outcome, without: &Outcome, backend: &str, sections: u64) -> Result<(), String> {
    let mut told = Vec::new();
    let mut rest = String::new();
    for line in with.error_text().lines() {
        match line.strip_prefix(&format!("sigblock: backend={backend} ")) {
            Some(counts) => told.push(counts.to_owned()),
            None => rest += &format!("{line}\n"),
        }
    }
    if with.status != without.status || with.stdout != without.stdout || rest != without.error_text() {
        return Err(format!("expected {}\ngot      {}", without.describe(), with.describe()));
    }
    let counted = told.iter().filter_map(|line| line.split_once("sections=")?.1.split(' ').next()?.parse::<u64>().ok());
    match counted.max() {
        Some(most) if most >= sections => Ok(()),
        most => Err(format!("expected {sections} sections or more, got {most:?}\n{}", with.describe())),
    }
}

/// A timer whose handler iterates, as the main line does.
fn iterating(context: &Context, report: &mut Report, library: &Library, seconds: u64) -> Result<()> {
    let program = Build::new("sigblock/soak/iterate.c").flag("-O1").build(context)?;
    let run = |seconds: u64| {
        let run = Run::new(&program).way(Way::Reference).args([seconds.to_string(), HERTZ.to_string()]);
        run.limit(seconds + GRACE)
    };
    for (backend, share) in [("user", 1), ("sigprocmask", 5)] {
        let seconds = seconds.div_ceil(share);
        let name = format!("iterating handler, {backend}, {seconds} s");
        let run = library.preloaded(&run(seconds), backend);
        let Some(figures) = Figures::of(context, report, &name, &run) else { continue };
        figures.all_zero(report, &["wrong"]);
        figures.at_least(report, "objects", 4);
        figures.at_least(report, "runs", HERTZ * seconds / 4);
        figures.at_least(report, "iterations", 1_000);
    }
    for (name, run) in [("without", run(3)), ("with off", library.preloaded(&run(3), "off"))] {
        let outcome = run.limit(9).output(context)?;
        report.equal(format!("iterating handler {name}: hangs"), outcome.status, Status::TimedOut);
    }
    Ok(())
}

/// The thread library, for a guest.
pub fn fixtures(context: &Context) -> Result<()> {
    threads(context, &Library::copy(context)?)?;
    Ok(())
}

/// The thread library in a guest.
pub fn run_in_guest(context: &Context, report: &mut Report) -> Result<()> {
    let library = Library { shared: context.work.join("libsigblock.so"), archive: context.work.join("libsigblock.a") };
    storm(context, report, &library, 8)
}

/// The program that is built on the thread library, with the shared object and with the archive.
fn threads(context: &Context, library: &Library) -> Result<[PathBuf; 2]> {
    let shared = library.linked(context, "threads.c").source("sigblock/library/tiny.c").build(context)?;
    let include = format!("-I{}", context.root.join("sigblock/include").display());
    let archive = Build::new("sigblock/library/threads.c")
        .source("sigblock/library/tiny.c")
        .flags(&["-O2", "-pthread", &include])
        .with(&library.archive)
        .output("threads-static")
        .build(context)?;
    Ok([shared, archive])
}

/// A thread library whose locks are held in sections, in a storm of signals whose handlers use it.
fn storm(context: &Context, report: &mut Report, library: &Library, seconds: u64) -> Result<()> {
    let [shared, archive] = threads(context, library)?;
    let (runs, slower) = match context.place {
        Place::Machine => (vec![(&shared, "user"), (&archive, "user"), (&shared, "sigprocmask"), (&shared, "off")], 1),
        Place::Guest => (vec![(&shared, "kernel"), (&archive, "kernel"), (&shared, "off")], SLOWER),
    };
    for (program, backend) in runs {
        let kind = if program == &archive { "libsigblock.a" } else { "libsigblock.so" };
        let name = format!("thread library with {kind}, {backend}, {seconds} s");
        let run = Run::new(program).way(Way::Reference).back_end(backend).env("SIGBLOCK_STATISTICS", "1");
        let run = run.args([seconds.to_string()]).limit(seconds + GRACE);
        let Some(figures) = Figures::of(context, report, &name, &run) else { continue };
        figures.is(report, "backend", backend);
        figures.all_zero(report, &["lost", "disordered"]);
        figures.at_least(report, "sent", 1_000 * seconds / slower);
        figures.at_least(report, "plain", 100 * seconds / slower);
        figures.at_least(report, "passed", 1_000 * seconds / slower);
        figures.at_least(report, "sections", 10_000 * seconds / slower);
        if backend == "off" {
            // The detector's proof.
            figures.at_least(report, "inside", 1);
            continue;
        }
        figures.all_zero(report, &["inside", "mail_lost"]);
        if backend != "sigprocmask" {
            figures.at_least(report, "held", if slower == 1 { 10 } else { 3 });
        }
    }
    Ok(())
}
