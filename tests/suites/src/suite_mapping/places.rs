//! Where objects are put, with what calls, and which file is read for the C library: what a program can see of it.

use crate::harness::{Build, Context, Report, Run, Status, Way, copy_with_interpreter};
use anyhow::Context as _;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use std::fs;
use std::path::Path;

const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";

pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = Build::new("mapping/places.c").build(context)?;
    let fixed = Build::inline("fixed.c", "int main(void) { return 0; }\n").flags(&["-no-pie", "-fno-pie"]);
    let fixed = fixed.build(context)?;
    let low = Run::new(&program).way(Way::Interpreter).args(["low"]);
    for (words, run) in [
        ("libraries lie high", low.clone()),
        ("and where a program at a fixed address cannot be preloaded", low.env("LD_PRELOAD", &fixed)),
    ] {
        let outcome = run.output(context)?;
        let result = if outcome.text() == "0 low\n" { Ok(()) } else { Err(outcome.describe()) };
        report.check(words, result.and(outcome.succeeded()));
    }
    filtered(context, report, &program)?;
    few_descriptors(context, report, &program)?;
    two_c_libraries(context, report, &program)
}

/// A program that lets mmap have Chromium's flags only, and madvise its advice, opens libraries as under ld-linux.
fn filtered(context: &Context, report: &mut Report, program: &Path) -> anyhow::Result<()> {
    let libraries = ["filter", "libz.so.1", "libssl.so.3", "libstdc++.so.6"];
    let want = Run::new(program).way(Way::Reference).args(libraries).output(context)?;
    anyhow::ensure!(want.status == Status::Exit(0), "ld-linux under the filter: {}", want.describe());
    for mode in ["scope", "table"] {
        let got = Run::new(program).way(Way::Interpreter).args(libraries).env("LD_LOOKUP", mode).output(context)?;
        report.check(format!("dlopen under a filter of mmap's flags and madvise's advice, {mode}"), got.same_as(&want));
    }
    Ok(())
}

/// With room for one descriptor beyond the three of a process, as under ld-linux.
fn few_descriptors(context: &Context, report: &mut Report, program: &Path) -> anyhow::Result<()> {
    let copy = context.work.join("few/places");
    fs::create_dir_all(copy.parent().context("a parent")?)?;
    copy_with_interpreter(program, &copy, &context.loader)?;
    let outcome = Run::new(program).way(Way::Reference).args(["few".as_ref(), copy.as_os_str()]).output(context)?;
    let result = if outcome.text() == "hello\n" { Ok(()) } else { Err(outcome.describe()) };
    report.check("a start with room for one descriptor", result);
    Ok(())
}

/// Of two C libraries the first one is the one, and its own file tells whether it is known.
fn two_c_libraries(context: &Context, report: &mut Report, program: &Path) -> anyhow::Result<()> {
    let place = |name: &str| context.work.join(name).join("libc.so.6");
    let (good, damaged) = (place("good"), place("damaged"));
    let mut bytes = fs::read(LIBC)?;
    fs::create_dir_all(good.parent().context("a parent")?)?;
    fs::write(&good, &bytes)?;
    let offset = {
        let file = object::File::parse(&*bytes)?;
        let mut symbols = file.dynamic_symbols();
        let symbol =
            symbols.find(|symbol| symbol.name() == Ok("_thread_db_sizeof_pthread")).context("no description")?;
        let section = file.section_by_index(symbol.section_index().context("no section")?)?;
        let (start, _) = section.file_range().context("not in the file")?;
        usize::try_from(start + symbol.address() - section.address())?
    };
    bytes.get_mut(offset..offset + 4).context("beyond the end")?.fill(0x5a);
    fs::create_dir_all(damaged.parent().context("a parent")?)?;
    fs::write(&damaged, &bytes)?;
    for (first, second, known) in [(&good, &damaged, true), (&damaged, &good, false)] {
        let list = format!("{} {}", first.display(), second.display());
        let outcome = Run::new(program).way(Way::Interpreter).env("LD_PRELOAD", list).output(context)?;
        let refused = outcome.status == Status::Exit(127) && outcome.error_text().contains("unsupported C library");
        let result = if known { outcome.text() == "hello\n" } else { refused };
        let words = if known { "a known one before a damaged one" } else { "a damaged one before a known one" };
        report.check(format!("two C libraries, {words}"), if result { Ok(()) } else { Err(outcome.describe()) });
    }
    Ok(())
}
