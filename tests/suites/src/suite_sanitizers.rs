//! Suite `sanitizers`: programs built with AddressSanitizer (with its leak checker), ThreadSanitizer and
//! UndefinedBehaviorSanitizer by gcc and clang. Clean programs stay clean and each report is the one under ld-linux in
//! the same run, addresses and process ids aside: the sanitizers read the object list, thread-local storage and symbols
//! for themselves.

use crate::harness::{Build, Compiler, Context, Outcome, Report, Run, Status, WAYS, Way};
use crate::same::label;
use anyhow::Context as _;
use std::path::Path;
use std::process::Command;

/// One fixture with its sanitizer.
struct Fixture {
    source: &'static str,
    sanitizer: &'static str,
    /// What each mode must say under ld-linux, on standard output or in the report.
    modes: &'static [(&'static str, &'static str)],
}

const FIXTURES: &[Fixture] = &[
    Fixture {
        source: "address",
        sanitizer: "address",
        modes: &[
            ("clean", "clean"),
            ("use-after-free", "AddressSanitizer: heap-use-after-free"),
            ("heap-overflow", "AddressSanitizer: heap-buffer-overflow"),
            ("stack-overflow", "AddressSanitizer: stack-buffer-overflow"),
            ("global-overflow", "AddressSanitizer: global-buffer-overflow"),
            ("in-a-thread", "created by T0 here"),
            ("leak", "SUMMARY: AddressSanitizer: 77 byte(s) leaked"),
            ("plugin-keeps", "called"),
            ("plugin-leaks", "SUMMARY: AddressSanitizer: 77 byte(s) leaked"),
            ("segmentation-fault", "AddressSanitizer: SEGV on unknown address"),
        ],
    },
    Fixture {
        source: "thread",
        sanitizer: "thread",
        modes: &[
            ("clean", "shared 2000"),
            ("race", "WARNING: ThreadSanitizer: data race"),
            ("lock-order", "WARNING: ThreadSanitizer: lock-order-inversion"),
            ("unjoined", "shared 0"),
        ],
    },
    Fixture {
        source: "undefined",
        sanitizer: "undefined",
        modes: &[
            ("clean", "clean 4"),
            ("overflow", "runtime error: signed integer overflow"),
            ("shift", "runtime error: shift exponent 42"),
            ("bounds", "runtime error: index 6 out of bounds"),
            ("division", "runtime error: division by zero"),
            ("vptr", "runtime error: downcast of address"),
        ],
    },
];

/// LLVM's first release whose LeakSanitizer knows a block of dynamic thread-local storage only if its own malloc gave
/// it.
const BLOCKS_UNKNOWN_SINCE: u32 = 18;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for compiler in [Compiler::Gcc, Compiler::Clang] {
        for fixture in FIXTURES {
            let name = format!("{} {}", compiler.name(), fixture.sanitizer);
            if let Err(error) = check(context, report, compiler, fixture) {
                report.check(name, Err(format!("{error:#}")));
            }
        }
    }
    Ok(())
}

fn check(context: &Context, report: &mut Report, compiler: Compiler, fixture: &Fixture) -> anyhow::Result<()> {
    let directory = format!("{}-{}", compiler.name(), fixture.sanitizer);
    let sanitize = format!("-fsanitize={}", fixture.sanitizer);
    let common = ["-std=c++17", "-g", "-O1", "-fno-omit-frame-pointer", "-pthread", "-w", &sanitize];
    let library = |name: &str| {
        let output = format!("{directory}/{name}");
        Build::new("sanitizers/library.cpp").compiler(compiler).shared().flags(&common).output(output).build(context)
    };
    let mut build = Build::new(format!("sanitizers/{}.cpp", fixture.source))
        .compiler(compiler)
        .flags(&common)
        .output(format!("{directory}/{}", fixture.source));
    if fixture.source == "address" {
        library("libplugin.so")?;
        build = build.with(library("liblibrary.so")?).flag("-Wl,-rpath,$ORIGIN");
    }
    let program = build.build(context)?;
    let major = compiler_version(compiler)?;
    for (mode, wanted) in fixture.modes {
        for (way, bind) in WAYS {
            let place = context.work.join(&directory);
            let start = |file: &Path| Run::new(file).bind(bind).directory(&place).limit(120);
            let result = if *mode == "plugin-keeps" && compiler == Compiler::Clang && major >= BLOCKS_UNKNOWN_SINCE {
                lost(context, &start(&program).way(way))
            } else {
                compare(context, &start, &program, way, mode, wanted)
            };
            report.check(format!("{directory} {mode} ({})", label(way, bind)), result);
        }
    }
    Ok(())
}

fn compare(
    context: &Context,
    start: &dyn Fn(&Path) -> Run,
    program: &Path,
    way: Way,
    mode: &str,
    wanted: &str,
) -> Result<(), String> {
    let told = |error: anyhow::Error| format!("{error:#}");
    let ours = start(program).way(way).args([mode]).output(context).map_err(told)?;
    // The sanitizers take /proc/self/exe for the program: started directly, under either loader, that is the loader's
    // file.
    let reference = match way {
        Way::Direct => start(&context.reference).args([program.as_os_str(), mode.as_ref()]),
        Way::Interpreter | Way::Reference => start(program).args([mode]),
    };
    let theirs = reference.way(Way::Reference).output(context).map_err(told)?;
    let (mut got, mut want) = (normalised(context, program, &ours), normalised(context, program, &theirs));
    if !want.contains(wanted) {
        return Err(format!("ld-linux does not say {wanted:?}: {}", theirs.describe()));
    }
    if way == Way::Direct {
        // There they look up the program's addresses in that file, under ld-linux too: the names mean nothing.
        (got, want) = (without_frames(&got), without_frames(&want));
    }
    if ours.status == theirs.status && got == want {
        return Ok(());
    }
    let different = want.lines().zip(got.lines()).find(|(want, got)| want != got);
    Err(format!("first difference {different:?}\nexpected {}\ngot      {}", theirs.describe(), ours.describe()))
}

/// Where the leak checker cannot know our blocks: what only a plug-in's thread-local variable points to is reported as
/// lost. ld-linux takes such blocks from the program's malloc, which our loader never calls.
fn lost(context: &Context, run: &Run) -> Result<(), String> {
    let got = run.clone().args(["plugin-keeps"]).output(context).map_err(|error| format!("{error:#}"))?;
    let summary = "SUMMARY: AddressSanitizer: 100 byte(s) leaked in 1 allocation(s).";
    let reported = got.status == Status::Exit(1) && got.text() == "called\n" && got.error_text().contains(summary);
    if reported {
        Ok(())
    } else {
        Err(format!("expected the leak of 100 bytes to be reported\ngot      {}", got.describe()))
    }
}

/// The compiler's major version.
fn compiler_version(compiler: Compiler) -> anyhow::Result<u32> {
    let output = Command::new(compiler.name()).arg("-dumpversion").output().context(compiler.name())?;
    let text = String::from_utf8(output.stdout)?;
    let major = text.trim().split('.').next().unwrap_or_default();
    major.parse().with_context(|| format!("{} -dumpversion: {text}", compiler.name()))
}

/// Standard output and the report without what differs from run to run: addresses (but not offsets in a file), process
/// and thread ids, dumps of memory, and the names of the loader and of the copy that has our interpreter.
fn normalised(context: &Context, program: &Path, outcome: &Outcome) -> String {
    let mut text = format!("{}{}", outcome.text(), outcome.error_text());
    for file in [program.to_owned(), context.loader.clone(), context.reference.clone()] {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let short = if file == program { name.as_str() } else { "LOADER" };
        text = text.replace(&format!("{}.rtld", file.display()), short).replace(&format!("{name}.rtld"), short);
        // Whole paths, and the name alone as ThreadSanitizer gives it.
        text = text.replace(&file.display().to_string(), short).replace(&format!("({name}+"), &format!("({short}+"));
    }
    text.lines()
        .filter(|line| !is_dump(line) && !is_suppression(line))
        // Whether the other thread has ended when the report is written differs from run to run.
        .map(|line| without_numbers(line).replace(", finished)", ", running)") + "\n")
        .collect()
}

/// A report without the frames' lines and variables' names, and its summary without the place.
fn without_frames(text: &str) -> String {
    let lines =
        text.lines().filter(|line| !line.trim_start().starts_with('#') && !line.contains("Location is global "));
    let cut = |line: &str| {
        let words = if line.starts_with("SUMMARY: ") { 3 } else { usize::MAX };
        line.split(' ').take(words).collect::<Vec<_>>().join(" ") + "\n"
    };
    lines.map(cut).collect()
}

/// Shadow memory as AddressSanitizer shows it, and bytes as UndefinedBehaviorSanitizer does.
fn is_dump(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("=>");
    let bytes = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit() || " []^".contains(c));
    bytes(line) || line.strip_prefix("0x").and_then(|line| line.split_once(':')).is_some_and(|(_, rest)| bytes(rest))
}

/// The account of leaks that LeakSanitizer leaves out by itself: glibc's blocks of thread-local storage, in some runs.
fn is_suppression(line: &str) -> bool {
    line.starts_with("-----")
        || ["Suppressions used:", "  count      bytes template"].contains(&line)
        || line.ends_with(" *tls_get_addr*")
}

/// A line with its addresses and ids replaced.
fn without_numbers(line: &str) -> String {
    let mut result = String::new();
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        let prefixes = [("0x", 16), ("==", 10), ("pid=", 10), ("tid=", 10), ("T", 10)];
        let found = prefixes.into_iter().find_map(|(prefix, radix)| {
            let number = rest.strip_prefix(prefix)?;
            let length = number.len() - number.trim_start_matches(|c: char| c.is_digit(radix)).len();
            // An offset in a file is the same in every run, and so is the number of a thread that is not an id.
            let kept = prefix == "0x" && result.ends_with('+') || prefix == "T" && !result.ends_with("sp 0x? ");
            (length > 0 && !kept).then_some((prefix, prefix.len() + length))
        });
        let (put, taken) = found.map_or((None, next.len_utf8()), |(prefix, taken)| (Some(prefix), taken));
        match put {
            Some(prefix) => {
                result.push_str(prefix);
                result.push('?');
            }
            None => result.push(next),
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_run_are_replaced_and_offsets_kept() {
        let line = "==15==ERROR: FPE on 0x12ab (pc 0x1f sp 0x2 T3706) #1 0x5 in f (lib.so+0x5e6) (pid=7)";
        let want = "==?==ERROR: FPE on 0x? (pc 0x? sp 0x? T?) #1 0x? in f (lib.so+0x5e6) (pid=?)";
        assert_eq!(without_numbers(line), want);
    }

    #[test]
    fn dumps_are_known() {
        assert!(is_dump("=>0x0c047fff8000: fa fa[fd]fa"));
        assert!(is_dump(" 00 00 00 00  48 ad"));
        assert!(!is_dump("    #1 0x55 in main"));
    }
}
