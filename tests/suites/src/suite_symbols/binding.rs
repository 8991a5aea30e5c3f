//! Binding and visibility: unique, weak, protected and symbolic definitions, absolute symbols, the order of the scope, and
//! interposition by the program and by LD_PRELOAD.

use anyhow::Result;

use super::{library, program};
use crate::elf_edit::Image;
use crate::harness::{Context, Report};
use crate::same::{Want, same};

/// DT_SYMBOLIC and DT_FLAGS (gABI, figure 5-10), and the flag DF_SYMBOLIC of the latter.
const DT_SYMBOLIC: u64 = 16;
const DT_FLAGS: u64 = 30;
const DF_SYMBOLIC: u64 = 2;

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    unique(context, report)?;
    scope(context, report)?;
    prefers_itself(context, report)?;
    undefined_weak(context, report)?;
    absolute(context, report)?;
    interposition(context, report)
}

fn unique(context: &Context, report: &mut Report) -> Result<()> {
    let first = library(context, "unique.cpp", "unique", "libfirst.so", &["-DGETTER=first"])?;
    let second = library(context, "unique.cpp", "unique", "libsecond.so", &["-DGETTER=second", "-Wl,-Bsymbolic"])?;
    let program = program(context, "unique_main.c", "unique", &[], &[&first, &second])?;
    same(
        context,
        report,
        "a unique symbol has one address, also in a symbolic library",
        &program,
        Want::Prints("1 6"),
        |run| run,
    );
    Ok(())
}

/// The first definition in scope order wins, weak or not; the scope is breadth first.
fn scope(context: &Context, report: &mut Report) -> Result<()> {
    let weak = library(context, "number.c", "weak-first", "libweak.so", &["-DFUNCTION=f", "-DNUMBER=1", "-DWEAK"])?;
    let strong = library(context, "number.c", "weak-first", "libstrong.so", &["-DFUNCTION=f", "-DNUMBER=2"])?;
    let first = program(context, "print.c", "weak-first", &[], &[&weak, &strong])?;
    same(context, report, "a weak definition that comes first wins", &first, Want::Prints("1"), |run| run);

    let weak = library(context, "number.c", "weak-last", "libweak.so", &["-DFUNCTION=f", "-DNUMBER=1", "-DWEAK"])?;
    let strong = library(context, "number.c", "weak-last", "libstrong.so", &["-DFUNCTION=f", "-DNUMBER=2"])?;
    let last = program(context, "print.c", "weak-last", &[], &[&strong, &weak])?;
    same(context, report, "a weak definition that comes last does not win", &last, Want::Prints("2"), |run| run);

    let deep = library(context, "number.c", "breadth", "libdeep.so", &["-DFUNCTION=f", "-DNUMBER=3"])?;
    let first = library(
        context,
        "number.c",
        "breadth",
        "libfirst.so",
        &["-DFUNCTION=unused", "-DNUMBER=0", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", &deep.to_string_lossy()],
    )?;
    let second = library(context, "number.c", "breadth", "libsecond.so", &["-DFUNCTION=f", "-DNUMBER=2"])?;
    let breadth = program(context, "print.c", "breadth", &[], &[&first, &second])?;
    same(context, report, "the scope is breadth first", &breadth, Want::Prints("2"), |run| run);
    Ok(())
}

/// A library whose own reference goes to its own definition, though the program defines the function too.
fn prefers_itself(context: &Context, report: &mut Report) -> Result<()> {
    let cases = [
        ("an ordinary library is interposed", "ordinary", "2 2"),
        ("DT_SYMBOLIC", "tag", "1 2"),
        ("DF_SYMBOLIC", "flag", "1 2"),
        ("a protected function", "protected", "1 2"),
        ("-Bsymbolic", "linker", "1 2"),
    ];
    for (name, kind, want) in cases {
        let directory = format!("symbolic-{kind}");
        let flags: &[&str] = if kind == "linker" { &["-Wl,-Bsymbolic"] } else { &["-Wl,-z,lazy"] };
        let mut all = vec!["-DFUNCTION=f", "-DNUMBER=1", "-DCALLER=caller"];
        all.extend(flags);
        let caller = library(context, "number.c", &directory, "libcaller.so", &all)?;
        let program = program(context, "print_caller.c", &directory, &["-DDEFINE=2", "-rdynamic"], &[&caller])?;
        let mut image = Image::read(&caller)?;
        match kind {
            "tag" => image.append_dynamic(DT_SYMBOLIC, 0)?,
            "flag" => image.append_dynamic(DT_FLAGS, DF_SYMBOLIC)?,
            "protected" => {
                let (symbol, _) = image.symbol("f")?;
                image.set(symbol + 5, 1, 3)?;
            }
            _ => {}
        }
        image.write(&caller)?;
        same(context, report, &format!("{name}: whose f() a library calls"), &program, Want::Prints(want), |run| run);
    }
    Ok(())
}

fn undefined_weak(context: &Context, report: &mut Report) -> Result<()> {
    for (kind, flags) in [("pie", &["-fPIE", "-pie"][..]), ("non-pie", &["-fno-pie", "-no-pie"][..])] {
        let directory = format!("undefined-weak-{kind}");
        let seen = library(context, "undefined_weak.c", &directory, "libseen.so", &["-DLIBRARY"])?;
        let mut all = flags.to_vec();
        all.push("-Wl,-z,dynamic-undefined-weak");
        let program = program(context, "undefined_weak.c", &directory, &all, &[&seen])?;
        same(
            context,
            report,
            &format!("undefined weak references are null ({kind})"),
            &program,
            Want::Prints("0 0 0 0 0"),
            |run| run,
        );
    }
    Ok(())
}

fn absolute(context: &Context, report: &mut Report) -> Result<()> {
    let odd = library(context, "absolute.s", "absolute", "libabsolute.so", &[])?;
    let program = program(context, "absolute_main.c", "absolute", &["-fPIC"], &[&odd])?;
    same(
        context,
        report,
        "absolute symbols keep their value; data without a type",
        &program,
        Want::Prints("0x1234 1 77"),
        |run| run,
    );
    Ok(())
}

fn interposition(context: &Context, report: &mut Report) -> Result<()> {
    let caller =
        library(context, "number.c", "interpose", "libcaller.so", &["-DFUNCTION=f", "-DNUMBER=1", "-DCALLER=caller"])?;
    let plain = program(context, "print_caller.c", "interpose", &[], &[&caller])?;
    let preload = library(context, "number.c", "interpose", "libpreload.so", &["-DFUNCTION=f", "-DNUMBER=3"])?;
    same(context, report, "without interposition", &plain, Want::Prints("1 1"), |run| run);
    same(context, report, "LD_PRELOAD interposes a library and the program", &plain, Want::Prints("3 3"), |run| {
        run.env("LD_PRELOAD", &preload)
    });

    let caller = library(
        context,
        "number.c",
        "interpose-both",
        "libcaller.so",
        &["-DFUNCTION=f", "-DNUMBER=1", "-DCALLER=caller"],
    )?;
    let own = program(context, "print_caller.c", "interpose-both", &["-DDEFINE=2"], &[&caller])?;
    same(context, report, "the program's definition comes before LD_PRELOAD's", &own, Want::Prints("2 2"), |run| {
        run.env("LD_PRELOAD", &preload)
    });

    let iterate = library(context, "iterate.c", "allocator", "libiterate.so", &[])?;
    let allocator = program(context, "allocator.c", "allocator", &["-fno-builtin", "-rdynamic"], &[&iterate])?;
    let want = Want::Prints("1 1 copied 42");
    same(context, report, "the program's malloc and dl_iterate_phdr are everybody's", &allocator, want, |run| run);
    Ok(())
}
