//! GNU and SysV hash tables, both, and none; symbols in them that are no definitions.

use anyhow::Result;

use super::{library, program};
use crate::elf_edit::{Image, tag};
use crate::harness::{Context, Report};
use crate::same::{Want, same};

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    for of_library in ["gnu", "sysv", "both"] {
        for of_program in ["gnu", "sysv", "both"] {
            let directory = format!("hash-{of_library}-{of_program}");
            let flag = format!("-Wl,--hash-style={of_library}");
            let many = library(context, "many.c", &directory, "libmany.so", &[&flag])?;
            let flag = format!("-Wl,--hash-style={of_program}");
            let program = program(context, "many_main.c", &directory, &[&flag], &[&many])?;
            let name = format!("library with {of_library} hash, program with {of_program}");
            same(context, report, &name, &program, Want::Prints("256 0"), |run| run);
        }
    }
    without_hash(context, report)?;
    no_definitions(context, report)
}

/// A library with neither table defines nothing, and loads.
fn without_hash(context: &Context, report: &mut Report) -> Result<()> {
    let first = library(
        context,
        "number.c",
        "hash-none",
        "libfirst.so",
        &["-DFUNCTION=f", "-DNUMBER=1", "-Wl,--hash-style=both"],
    )?;
    let second = library(context, "number.c", "hash-none", "libsecond.so", &["-DFUNCTION=f", "-DNUMBER=2"])?;
    let program = program(context, "print.c", "hash-none", &[], &[&first, &second])?;
    same(context, report, "a library with both hash tables defines", &program, Want::Prints("1"), |run| run);
    let mut image = Image::read(&first)?;
    image.retag(tag::HASH, tag::UNKNOWN)?;
    image.retag(tag::GNU_HASH, tag::UNKNOWN)?;
    image.write(&first)?;
    same(
        context,
        report,
        "a library without a hash table defines nothing and loads",
        &program,
        Want::Prints("2"),
        |run| run,
    );
    Ok(())
}

/// Edits of the first library's symbol after which it is no definition for others: the second library's is used.
fn no_definitions(context: &Context, report: &mut Report) -> Result<()> {
    // Offset in Elf64_Sym, width, value.
    let edits: [(&str, usize, usize, u64); 7] = [
        ("of hidden visibility", 5, 1, 2),
        ("of internal visibility", 5, 1, 1),
        ("that is undefined", 6, 2, 0),
        ("whose value is 0", 8, 8, 0),
        ("of local binding", 4, 1, 0x02),
        ("of type section", 4, 1, 0x13),
        ("of type file", 4, 1, 0x14),
    ];
    for (index, (what, offset, width, value)) in edits.into_iter().enumerate() {
        for style in ["gnu", "sysv"] {
            let directory = format!("no-definition-{index}-{style}");
            let flag = format!("-Wl,--hash-style={style}");
            let first =
                library(context, "number.c", &directory, "libfirst.so", &["-DFUNCTION=f", "-DNUMBER=1", &flag])?;
            let second =
                library(context, "number.c", &directory, "libsecond.so", &["-DFUNCTION=f", "-DNUMBER=2", &flag])?;
            let program = program(context, "print.c", &directory, &[], &[&first, &second])?;
            let mut image = Image::read(&first)?;
            let (symbol, _) = image.symbol("f")?;
            image.set(symbol + offset, width, value)?;
            image.write(&first)?;
            let name = format!("a symbol {what} is no definition for others ({style} hash)");
            same(context, report, &name, &program, Want::Prints("2"), |run| run);
        }
    }
    Ok(())
}
