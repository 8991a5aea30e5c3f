//! Suite `lazy`: when a function is bound, and what the entry that binds it keeps. Owns the list of calls; what the program's
//! own slot held and what each register held is told by the fixtures, from inside.

use crate::elf_edit::Image;
use crate::harness::{Bind, Build, Compiler, Context, Linker, Outcome, Report, Run, Status, WAYS, Way};
use crate::same::{Want, label, same};
use anyhow::Context as _;
use object::{Object as _, ObjectSection as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The exit status by which a fixture says that the processor has no such registers.
const NOT_THIS_PROCESSOR: i32 = 77;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    slots(context, report)?;
    registers(context, report)?;
    conventions(context, report)?;
    many_at_once(context, report)?;
    undefined(context, report)?;
    alternate_stack(context, report)
}

/// What the program's own slot must hold before the first call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    InsidePlt,
    Definition,
}

fn slots(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for linker in [Linker::Bfd, Linker::Lld, Linker::Mold] {
        for (kind, flags) in [("PIE", ["-fpie", "-pie"]), ("non-PIE", ["-fno-pie", "-no-pie"])] {
            let directory = format!("slot-{}-{kind}", linker.name());
            let library = Build::new("lazy/target.c")
                .shared()
                .linker(linker)
                .output(format!("{directory}/libtarget.so"))
                .build(context)?;
            let program =
                Build::new("lazy/slot.c").linker(linker).flags(&flags).flags(&["-O1", "-Wl,-z,lazy"]).with(&library);
            let program = program.output(format!("{directory}/slot")).build(context)?;
            for (way, bind) in WAYS {
                let want = if bind == Bind::Lazy { Before::InsidePlt } else { Before::Definition };
                slot(context, report, &format!("slot, {} {kind}", linker.name()), &program, way, bind, want);
            }
            if linker != Linker::Bfd {
                continue;
            }
            // The same file with one more dynamic entry, so that nothing but the entry makes the difference.
            for (name, tag, value) in [("DT_BIND_NOW", 24, 0), ("DF_BIND_NOW", 30, 8)] {
                let mut image = Image::read(&program)?;
                image.append_dynamic(tag, value)?;
                let path = context.work.join(format!("{directory}/slot-{name}"));
                image.write(&path)?;
                for way in [Way::Direct, Way::Interpreter] {
                    slot(context, report, &format!("slot, {name}, {kind}"), &path, way, Bind::Lazy, Before::Definition);
                }
            }
            let path =
                Build::new("lazy/slot.c").linker(linker).flags(&flags).flags(&["-O1", "-Wl,-z,now"]).with(&library);
            let path = path.output(format!("{directory}/slot-now")).build(context)?;
            for way in [Way::Direct, Way::Interpreter] {
                slot(context, report, &format!("slot, -z now, {kind}"), &path, way, Bind::Lazy, Before::Definition);
            }
        }
    }
    Ok(())
}

fn slot(context: &Context, report: &mut Report, name: &str, program: &Path, way: Way, bind: Bind, want: Before) {
    let result = Run::new(program)
        .way(way)
        .bind(bind)
        .output(context)
        .and_then(|outcome| Ok(judge_slot(&outcome, &plt(program)?, want)));
    let result = result.unwrap_or_else(|error| Err(format!("{error:#}")));
    report.check(format!("{name} ({})", label(way, bind)), result);
}

fn judge_slot(outcome: &Outcome, plt: &[Range<u64>], want: Before) -> Result<(), String> {
    let text = outcome.text();
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (title, address, kind) = (words.next(), words.next().unwrap_or_default(), words.next());
    let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap_or(u64::MAX);
    let before = match want {
        Before::InsidePlt => kind == Some("other") && plt.iter().any(|range| range.contains(&address)),
        Before::Definition => kind == Some("definition"),
    };
    let rest: Vec<&str> = lines.collect();
    if title == Some("before")
        && before
        && rest == ["after definition", "answer 42 again 2"]
        && outcome.status == Status::Exit(0)
    {
        return Ok(());
    }
    Err(format!(
        "expected before the call: {want:?}, PLT at {plt:x?}; after it: the definition\ngot      {}",
        outcome.describe()
    ))
}

/// Where the file's procedure linkage tables lie, as distances from its first byte in memory.
fn plt(program: &Path) -> anyhow::Result<Vec<Range<u64>>> {
    let bytes = std::fs::read(program)?;
    let file = object::File::parse(&*bytes)?;
    let first = object::ObjectSegment::address(&file.segments().next().context("no PT_LOAD")?);
    let sections = file.sections().filter(|section| matches!(section.name(), Ok(".plt" | ".plt.sec")));
    Ok(sections.map(|section| section.address() - first..section.address() - first + section.size()).collect())
}

/// Every register with a pattern, before and after a call of an unbound function.
fn registers(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let library =
        Build::new("lazy/keep.c").source("lazy/spy.S").shared().compiler(Compiler::Clang).flag("-O2").build(context)?;
    // bfd's PLT entries change no register; mold's use r11.
    let program = Build::new("lazy/probe.c").source("lazy/caller.S").linker(Linker::Bfd).flags(&["-O1", "-Wl,-z,lazy"]);
    let program = program.with(&library).build(context)?;
    for which in ["spy", "ifunc", "preserve_most", "preserve_all"] {
        for level in ["sse", "avx2", "avx512"] {
            let name = format!("registers, {which} {level}");
            by_level(context, report, &name, &program, &[which, level], &|way, bind| {
                // A resolver runs inside the call only if the call binds; direct or not makes no difference.
                let resolved = which == "ifunc" && bind == Bind::Lazy && way != Way::Reference;
                format!("{which} {level}: equal, resolver ran {} times in the call\n", i32::from(resolved))
            });
        }
    }
    Ok(())
}

/// First calls with arguments in registers, compiled from C.
fn conventions(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let library =
        Build::new("lazy/convention_library.c").shared().compiler(Compiler::Clang).flag("-O2").build(context)?;
    let program = Build::new("lazy/convention.c")
        .compiler(Compiler::Clang)
        .flags(&["-O2", "-Wl,-z,lazy"])
        .with(&library)
        .build(context)?;
    for which in ["variadic", "sse", "structure", "x87", "regcall", "regcall-sse", "avx2", "avx512"] {
        by_level(context, report, &format!("arguments, {which}"), &program, &[which], &|_, _| {
            format!("{which} right\n")
        });
    }
    Ok(())
}

/// Four ways, or a line that says that the processor lacks the registers: whether it does is asked of ld-linux's run.
fn by_level(
    context: &Context,
    report: &mut Report,
    name: &str,
    program: &Path,
    arguments: &[&str],
    want: &dyn Fn(Way, Bind) -> String,
) {
    let reference = Run::new(program).args(arguments).way(Way::Reference).bind(Bind::Now).output(context);
    match reference {
        Ok(outcome) if outcome.status == Status::Exit(NOT_THIS_PROCESSOR) => {
            report.note(format!("{name}: not run, the processor has no such registers"));
            return;
        }
        Err(error) => return report.check(name, Err(format!("{error:#}"))),
        Ok(outcome) if outcome.status != Status::Exit(0) => {
            return report.check(name, Err(format!("wrong even when ld-linux bound at start\n{}", outcome.describe())));
        }
        Ok(_) => report.note(format!("{name}: runs")),
    }
    for (way, bind) in WAYS {
        let want = want(way, bind);
        let result =
            Run::new(program).args(arguments).way(way).bind(bind).output(context).map_err(|error| format!("{error:#}"));
        let result = result.and_then(|outcome| {
            if outcome.status == Status::Exit(0) && outcome.text() == want {
                Ok(())
            } else {
                Err(format!("expected Exit(0), {want:?}\ngot      {}", outcome.describe()))
            }
        });
        report.check(format!("{name} ({})", label(way, bind)), result);
    }
}

/// 128 first calls by eight threads at once, and inside a signal handler.
fn many_at_once(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let library = Build::new("lazy/many_library.c").shared().flag("-O1").build(context)?;
    let program = Build::new("lazy/many.c").flags(&["-O1", "-pthread", "-Wl,-z,lazy"]).with(&library).build(context)?;
    for which in ["threads", "signal"] {
        same(context, report, &format!("first calls, {which}"), &program, Want::Prints("right"), |run| {
            run.args([which])
        });
    }
    Ok(())
}

/// A function that nobody defines: harmless until it is called, fatal in glibc's words when it is, or when all is bound.
fn undefined(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let library = Build::new("lazy/undefined_library.c").shared().flag("-Wl,-z,lazy").build(context)?;
    let program = Build::new("lazy/undefined.c")
        .flags(&["-Wl,-z,lazy", "-Wl,--allow-shlib-undefined"])
        .with(&library)
        .build(context)?;
    let line = format!("symbol lookup error: {}: undefined symbol: nobody_defines_this\n", library.display());
    for way in [Way::Direct, Way::Interpreter] {
        for (name, bind, arguments, status, text) in [
            ("undefined and never called", Bind::Lazy, &[][..], 0, "before\nafter 7\n"),
            ("undefined and called", Bind::Lazy, &["call"][..], 127, "before\n"),
            ("undefined and bound at start", Bind::Now, &[][..], 127, ""),
        ] {
            let result = (|| -> anyhow::Result<Result<(), String>> {
                let run = Run::new(&program).bind(bind).args(arguments);
                let reference = run.clone().way(Way::Reference).output(context)?;
                let error = reference.error_text();
                let as_known = reference.status == Status::Exit(status) && reference.text() == text;
                if !as_known || (status != 0 && !error.ends_with(&line)) || (status == 0 && !error.is_empty()) {
                    return Ok(Err(format!("ld-linux does not do what this case is about\n{}", reference.describe())));
                }
                Ok(run.way(way).output(context)?.same_as(&reference))
            })();
            let result = result.unwrap_or_else(|error| Err(format!("{error:#}")));
            report.check(format!("{name} ({})", label(way, bind)), result);
        }
    }
    Ok(())
}

/// `cases/t3`: a first call from a handler on an alternate stack touches no more of it than under ld-linux.
fn alternate_stack(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let mut variants = vec![("avx2", &["-mavx2"][..])];
    if std::arch::is_x86_feature_detected!("avx512f") {
        variants.push(("avx512", &["-mavx512f", "-DWIDE"][..]));
    } else {
        report.note("alternate stack, avx512: not run, the processor has no such registers");
    }
    if !std::arch::is_x86_feature_detected!("avx2") {
        report.note("alternate stack, avx2: not run, the processor has no such registers");
        return Ok(());
    }
    for (level, flags) in variants {
        for linker in [Linker::Bfd, Linker::Lld, Linker::Mold] {
            let directory = format!("t3-{level}-{}", linker.name());
            let library = Build::new("cases/t3lib.c").shared().linker(linker).flag("-O1").flags(flags);
            let library = library.output(format!("{directory}/libt3.so")).build(context)?;
            let program =
                Build::new("cases/t3.c").linker(linker).flag("-O1").flags(flags).flag("-Wl,-z,lazy").with(&library);
            let program: PathBuf = program.output(format!("{directory}/t3")).build(context)?;
            for (way, bind) in WAYS {
                let result = (|| -> anyhow::Result<Result<String, String>> {
                    let ours = Run::new(&program).way(way).bind(bind).output(context)?;
                    let theirs = Run::new(&program).way(Way::Reference).bind(bind).output(context)?;
                    let (Some(our_bytes), Some(their_bytes)) = (touched(&ours), touched(&theirs)) else {
                        return Ok(Err(format!(
                            "expected `bad 0 touched N of M`\ngot      {}\nld-linux {}",
                            ours.describe(),
                            theirs.describe()
                        )));
                    };
                    let line = format!("{our_bytes} bytes touched, ld-linux {their_bytes}");
                    Ok(if our_bytes <= their_bytes { Ok(line) } else { Err(format!("{line}\n{}", ours.describe())) })
                })();
                let name = format!("alternate stack, {level} {} ({})", linker.name(), label(way, bind));
                let result = result.unwrap_or_else(|error| Err(format!("{error:#}")));
                if let Ok(line) = &result {
                    report.note(format!("{name}: {line}"));
                }
                report.check(name, result.map(drop));
            }
        }
    }
    Ok(())
}

/// The number in `bad 0 touched N of M`.
fn touched(outcome: &Outcome) -> Option<u64> {
    let text = outcome.text();
    let rest = text.strip_prefix("bad 0 touched ")?;
    (outcome.status == Status::Exit(0)).then(|| rest.split(' ').next()?.parse().ok()).flatten()
}
