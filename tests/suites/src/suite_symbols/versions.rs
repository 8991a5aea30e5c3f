//! Symbol versions: default and hidden ones, several of one symbol, references with and without a version against libraries
//! with and without versions, weak needs, missing versions.

use std::path::PathBuf;

use anyhow::Result;

use super::{library, program};
use crate::elf_edit::{Image, tag};
use crate::harness::{Build, Context, Report};
use crate::same::{Want, same, written};

/// A build of the library: its flags and version script.
const LIBRARIES: &[(&str, &[&str], &str)] = &[
    // The reference to libc gives it a version table, in which f() has no version: the usual library without versions.
    ("none", &["-DONLY=7", "-DUSES_LIBC"], ""),
    // No version table at all.
    ("no table", &["-DONLY=7", "-nostdlib"], ""),
    ("V1", &["-DONLY=1"], "v1.map"),
    ("V1,V2", &["-DTWO"], "v2.map"),
    ("V1,hidden V2", &["-DTWO_HIDDEN"], "v2.map"),
    ("V1,V2,V3", &["-DTHREE"], "v3.map"),
    ("V9", &["-DONLY=9"], "v9.map"),
];

const NO_V1: Want<'static> = Want::Fails(1, "version `V1' not found (required by ");
const NO_V2: Want<'static> = Want::Fails(1, "version `V2' not found (required by ");
const UNVERSIONED: Want<'static> = Want::Warns("7", "/libv.so: no version information available (required by ");

/// What the program was linked against, what it finds, what it prints.
const MATRIX: &[(&str, &str, Want)] = &[
    ("none", "none", Want::Prints("7")),
    ("none", "V1", Want::Prints("1")),
    ("none", "V1,V2", Want::Prints("1")),
    ("none", "V1,hidden V2", Want::Prints("1")),
    ("none", "V1,V2,V3", Want::Prints("1")),
    ("none", "V9", Want::Prints("9")),
    ("V1", "none", UNVERSIONED),
    ("V1", "V1", Want::Prints("1")),
    ("V1", "V1,V2", Want::Prints("1")),
    ("V1", "V1,hidden V2", Want::Prints("1")),
    ("V1", "V1,V2,V3", Want::Prints("1")),
    ("V1", "V9", NO_V1),
    ("V1,V2", "none", UNVERSIONED),
    ("V1,V2", "V1", NO_V2),
    ("V1,V2", "V1,V2", Want::Prints("2")),
    ("V1,V2", "V1,hidden V2", Want::Prints("2")),
    ("V1,V2", "V1,V2,V3", Want::Prints("2")),
    ("V1,V2", "V9", NO_V2),
];

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    matrix(context, report)?;
    without_table(context, report)?;
    other_libraries(context, report)?;
    weak_need(context, report)?;
    two_missing(context, report)?;
    local_version(context, report)?;
    needs_itself(context, report)
}

/// Builds the library called `kind` as DIRECTORY/d/libv.so.
fn versioned(context: &Context, directory: &str, name: &str, kind: &str, more: &[&str]) -> Result<PathBuf> {
    let known = LIBRARIES.iter().find(|(library, ..)| *library == kind);
    let (_, flags, map) = known.ok_or_else(|| anyhow::anyhow!("no library {kind}"))?;
    let script = format!("-Wl,--version-script={}", context.programs.join("symbols").join(map).display());
    let mut all = flags.to_vec();
    all.extend(more);
    if !map.is_empty() {
        all.push(&script);
    }
    library(context, "versions.c", directory, name, &all)
}

/// A library without any version table: ld-linux warns, then stops at an assertion when the symbol is looked up in it. The
/// right end is that of any library without versions.
fn without_table(context: &Context, report: &mut Report) -> Result<()> {
    let against = versioned(context, "no-table", "libv.so", "V1,V2", &[])?;
    let needing = program(context, "print.c", "no-table", &[], &[&against])?;
    versioned(context, "no-table", "libv.so", "no table", &[])?;
    let name = "linked against [V1,V2], finds a library without a version table";
    written(context, report, name, &needing, UNVERSIONED, |run| run);

    let against = versioned(context, "no-table-none", "libv.so", "none", &[])?;
    let plain = program(context, "print.c", "no-table-none", &[], &[&against])?;
    versioned(context, "no-table-none", "libv.so", "no table", &[])?;
    let name = "linked against [none], finds a library without a version table";
    same(context, report, name, &plain, Want::Prints("7"), |run| run);
    Ok(())
}

fn matrix(context: &Context, report: &mut Report) -> Result<()> {
    for (index, (linked, found, want)) in MATRIX.iter().enumerate() {
        for style in ["gnu", "sysv"] {
            let directory = format!("version-{index}-{style}");
            let against = versioned(context, &directory, "libv.so", linked, &[])?;
            let program = program(context, "print.c", &directory, &[], &[&against])?;
            versioned(context, &directory, "libv.so", found, &[&format!("-Wl,--hash-style={style}")])?;
            let name = format!("linked against [{linked}], finds [{found}] ({style} hash)");
            same(context, report, &name, &program, *want, |run| run);
        }
    }
    Ok(())
}

/// What another library before the right one must define to be taken: the same version of any library, or none.
fn other_libraries(context: &Context, report: &mut Report) -> Result<()> {
    let cases = [
        ("V1,V2", "without versions", "none", Want::Prints("7")),
        ("V1,V2", "with another version", "V9", Want::Prints("2")),
        ("V1,V2", "with an older version", "V1", Want::Prints("2")),
        ("V1", "with the same version", "V1,V2", Want::Prints("1")),
        ("V1,V2", "with the same version, hidden", "V1,hidden V2", Want::Prints("2")),
    ];
    for (index, (linked, what, earlier, want)) in cases.into_iter().enumerate() {
        let directory = format!("other-{index}");
        let right = versioned(context, &directory, "libv.so", linked, &[])?;
        let other = library(context, "number.c", &directory, "libother.so", &["-DFUNCTION=unused", "-DNUMBER=0"])?;
        let program = program(context, "print.c", &directory, &[], &[&other, &right])?;
        versioned(context, &directory, "libother.so", earlier, &[])?;
        let name = format!("a versioned reference and an earlier library {what}");
        same(context, report, &name, &program, want, |run| run);
    }
    Ok(())
}

/// VER_FLG_WEAK: the version may be missing.
fn weak_need(context: &Context, report: &mut Report) -> Result<()> {
    let against = versioned(context, "weak-need", "libv.so", "V1,V2", &[])?;
    let other = library(context, "number.c", "weak-need", "libg.so", &["-DFUNCTION=g", "-DNUMBER=4"])?;
    let program = program(context, "weak_need.c", "weak-need", &[], &[&against, &other])?;
    same(context, report, "a weak reference to a version that is there", &program, Want::Prints("2 4"), |run| run);
    versioned(context, "weak-need", "libv.so", "V1", &[])?;
    // Whether the linker marks a need of weak references only as weak depends on its age: set it both ways.
    for (flags, want) in [(2, Want::Prints("0 4")), (0, NO_V2)] {
        let mut image = Image::read(&program)?;
        let entry = version_need(&image, "V2")?;
        image.set(entry + 4, 2, flags)?;
        image.write(&program)?;
        let name = format!("a missing version whose need has flags {flags}");
        same(context, report, &name, &program, want, |run| run);
    }
    Ok(())
}

/// File offset of the Elf64_Vernaux for this version.
fn version_need(image: &Image, version: &str) -> Result<usize> {
    let mut need = image.table(tag::VERNEED)?;
    loop {
        let mut entry = need + image.number(need + 8, 4)? as usize;
        loop {
            if image.string(image.number(entry + 8, 4)?)? == version {
                return Ok(entry);
            }
            let next = image.number(entry + 12, 4)? as usize;
            if next == 0 {
                break;
            }
            entry += next;
        }
        let next = image.number(need + 12, 4)? as usize;
        if next == 0 {
            anyhow::bail!("no need of version {version}");
        }
        need += next;
    }
}

/// Two libraries that both lack a version: ld-linux says so for each.
fn two_missing(context: &Context, report: &mut Report) -> Result<()> {
    let first = versioned(context, "two-missing", "libv.so", "V1,V2", &[])?;
    let script = format!("-Wl,--version-script={}", context.programs.join("symbols/v1.map").display());
    let relay = library(context, "print_caller.c", "two-missing", "librelay.so", &["-Dmain=relay_main"])?;
    let second = library(context, "number.c", "two-missing", "libu.so", &["-DFUNCTION=f", "-DNUMBER=4", &script])?;
    let needing = program(context, "print.c", "two-missing", &[], &[&first, &second, &relay])?;
    versioned(context, "two-missing", "libv.so", "V9", &[])?;
    same(context, report, "a missing version among several libraries", &needing, NO_V2, |run| run);
    Ok(())
}

/// A defined symbol whose version index is 0 (local): linkers have made such files by mistake, and ld-linux lets others use it.
fn local_version(context: &Context, report: &mut Report) -> Result<()> {
    let first = versioned(context, "local-version", "libfirst.so", "V1", &[])?;
    let second = library(context, "number.c", "local-version", "libsecond.so", &["-DFUNCTION=f", "-DNUMBER=2"])?;
    let program = {
        let stub = library(context, "number.c", "local-version/stub", "libfirst.so", &["-DFUNCTION=f", "-DNUMBER=0"])?;
        program(context, "print.c", "local-version", &[], &[&stub, &second])?
    };
    same(context, report, "an unversioned reference to a versioned symbol", &program, Want::Prints("1"), |run| run);
    let mut image = Image::read(&first)?;
    let (_, index) = image.symbol("f")?;
    let versions = image.table(tag::VERSYM)?;
    image.set(versions + 2 * index, 2, 0)?;
    image.write(&first)?;
    same(
        context,
        report,
        "a symbol with version index 0 is used as if it were global",
        &program,
        Want::Prints("1"),
        |run| run,
    );
    Ok(())
}

/// A library whose version need names the library itself, which defines no version, is one without version information.
fn needs_itself(context: &Context, report: &mut Report) -> Result<()> {
    let needed = versioned(context, "itself", "libv.so", "V1", &[])?;
    let relay = Build::new("symbols/number.c")
        .shared()
        .flags(&["-DFUNCTION=own", "-DNUMBER=3", "-Wl,-soname,libself.so", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"])
        .text("itself/calls_f.c", "int f(void); int own(void); int caller(void) { return f() + own(); }\n")
        .with(&needed)
        .output("itself/d/libself.so")
        .build(context)?;
    let program = program(context, "print_caller.c", "itself", &["-DDEFINE=5"], &[&relay])?;
    let mut image = Image::read(&relay)?;
    let soname = image.dynamic(14)?.value;
    let need = image.table(tag::VERNEED)?;
    // Of the two needs (libv.so and, where the C library is referenced, libc.so.6) the one of libv.so.
    let mut at = need;
    while image.string(image.number(at + 4, 4)?)? != "libv.so" {
        at += image.number(at + 12, 4)? as usize;
    }
    image.set(at + 4, 4, soname)?;
    image.write(&relay)?;
    let want = Want::Warns("4 5", "/libself.so: no version information available (required by ");
    let name = "a version need that names its own library, without version definitions";
    same(context, report, name, &program, want, |run| run);
    Ok(())
}
