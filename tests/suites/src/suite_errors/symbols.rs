//! Missing libraries, symbols and versions.

use std::fs;

use anyhow::Result;

use super::{library, program};
use crate::harness::{Context, Report};
use crate::same::{Want, same, written};

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    missing_libraries(context, report)?;
    missing_symbols(context, report)?;
    missing_versions(context, report)
}

fn missing_libraries(context: &Context, report: &mut Report) -> Result<()> {
    let one = library(context, "number.c", "missing-one", "libone.so", &["-DFUNCTION=one", "-DNUMBER=1"], &[])?;
    let single = program(context, "needs.c", "missing-one", &["-DFIRST=one"], &[&one])?;
    fs::remove_file(one)?;
    let text = |program: &std::path::Path, names: &[&str]| -> String {
        let reason = "cannot open shared object file: No such file or directory";
        let line =
            |name: &&str| format!("{}: error while loading shared libraries: {name}: {reason}\n", program.display());
        names.iter().map(line).collect()
    };
    let said = text(&single, &["libone.so"]);
    same(context, report, "one missing library", &single, Want::Says(127, &said), |run| run);
    let named = said.replacen(&single.display().to_string(), "other name", 1);
    same(context, report, "the message begins with argv[0]", &single, Want::Says(127, &named), |run| {
        run.argument_zero("other name")
    });

    // The program needs libone (missing), libfound and libtwo (missing); libfound needs libdeep (missing): breadth first.
    let directory = "missing-three";
    let one = library(context, "number.c", directory, "libone.so", &["-DFUNCTION=one", "-DNUMBER=1"], &[])?;
    let two = library(context, "number.c", directory, "libtwo.so", &["-DFUNCTION=two", "-DNUMBER=2"], &[])?;
    let deep = library(context, "number.c", directory, "libdeep.so", &["-DFUNCTION=deep", "-DNUMBER=3"], &[])?;
    let found =
        library(context, "needs.c", directory, "libfound.so", &["-DNAME=found", "-DFIRST=deep"], &[&deep, &one])?;
    let three = program(context, "needs.c", directory, &["-DFIRST=one", "-DSECOND=two"], &[&one, &found, &two])?;
    for gone in [one, two, deep] {
        fs::remove_file(gone)?;
    }
    // ld-linux stops at the first; a person wants to install all three at once. A name is said once, though two need it.
    let said = text(&three, &["libone.so", "libtwo.so", "libdeep.so"]);
    written(context, report, "one line for each missing library, in order", &three, Want::Says(127, &said), |run| run);
    Ok(())
}

fn missing_symbols(context: &Context, report: &mut Report) -> Result<()> {
    let define = ["-DFUNCTION=one", "-DNUMBER=1", "-DDATA=variable"];
    let undefine = ["-DFUNCTION=unused", "-DNUMBER=1"];
    let one = library(context, "number.c", "symbol-function", "libone.so", &define, &[])?;
    let calls = program(context, "needs.c", "symbol-function", &["-DFIRST=one"], &[&one])?;
    library(context, "number.c", "symbol-function", "libone.so", &undefine, &[])?;
    let said = format!("{0}: symbol lookup error: {0}: undefined symbol: one\n", calls.display());
    same(context, report, "a missing function", &calls, Want::Says(127, &said), |run| run);

    let one = library(context, "number.c", "symbol-variable", "libone.so", &define, &[])?;
    let refers = program(context, "variable.c", "symbol-variable", &["-fPIC"], &[&one])?;
    library(context, "number.c", "symbol-variable", "libone.so", &undefine, &[])?;
    let said = format!("{0}: symbol lookup error: {0}: undefined symbol: variable\n", refers.display());
    same(context, report, "a missing variable", &refers, Want::Says(127, &said), |run| run);

    let one = library(context, "number.c", "symbol-library", "libone.so", &define, &[])?;
    let relay =
        library(context, "needs.c", "symbol-library", "librelay.so", &["-DNAME=relay", "-DFIRST=one"], &[&one])?;
    let through = program(context, "needs.c", "symbol-library", &["-DFIRST=relay"], &[&relay, &one])?;
    library(context, "number.c", "symbol-library", "libone.so", &undefine, &[])?;
    let said = format!("{}: symbol lookup error: {}: undefined symbol: one\n", through.display(), relay.display());
    same(context, report, "a function that a library misses", &through, Want::Says(127, &said), |run| run);
    let named = said.replacen(&through.display().to_string(), "name", 1);
    same(context, report, "the message names argv[0], then the object", &through, Want::Says(127, &named), |run| {
        run.argument_zero("name")
    });
    Ok(())
}

fn missing_versions(context: &Context, report: &mut Report) -> Result<()> {
    fs::create_dir_all(context.work.join("maps"))?;
    let map = |name: &str, text: &str| -> Result<String> {
        let path = context.work.join("maps").join(name);
        fs::write(&path, text)?;
        Ok(format!("-Wl,--version-script={}", path.display()))
    };
    let with_f = map("with_f", "V2 { global: one; };\n")?;
    let without_f = map("without_f", "V2 { global: unused; local: *; };\n")?;
    let other = map("other", "V7 { global: one; };\n")?;
    let define = ["-DFUNCTION=one", "-DNUMBER=1", &with_f];
    let one = library(context, "number.c", "version-symbol", "libone.so", &define, &[])?;
    let calls = program(context, "needs.c", "version-symbol", &["-DFIRST=one"], &[&one])?;
    library(context, "number.c", "version-symbol", "libone.so", &["-DFUNCTION=unused", "-DNUMBER=1", &without_f], &[])?;
    let said = format!("{0}: symbol lookup error: {0}: undefined symbol: one, version V2\n", calls.display());
    same(context, report, "a missing function with its version", &calls, Want::Says(127, &said), |run| run);

    let one = library(context, "number.c", "version-gone", "libone.so", &define, &[])?;
    let needs = program(context, "needs.c", "version-gone", &["-DFIRST=one"], &[&one])?;
    library(context, "number.c", "version-gone", "libone.so", &["-DFUNCTION=one", "-DNUMBER=1", &other], &[])?;
    let said = format!("{0}: {1}: version `V2' not found (required by {0})\n", needs.display(), one.display());
    same(context, report, "a missing version: exit status 1", &needs, Want::Says(1, &said), |run| run);

    // Two libraries, each without the version that is needed of it: a line for each.
    let directory = "version-two";
    let one = library(context, "number.c", directory, "libone.so", &define, &[])?;
    let two = library(
        context,
        "number.c",
        directory,
        "libtwo.so",
        &["-DFUNCTION=two", "-DNUMBER=2", &map("two", "W2 { global: two; };\n")?],
        &[],
    )?;
    let needs = program(context, "needs.c", directory, &["-DFIRST=one", "-DSECOND=two"], &[&one, &two])?;
    library(context, "number.c", directory, "libone.so", &["-DFUNCTION=one", "-DNUMBER=1", &other], &[])?;
    library(
        context,
        "number.c",
        directory,
        "libtwo.so",
        &["-DFUNCTION=two", "-DNUMBER=1", &map("none", "W9 { global: two; };\n")?],
        &[],
    )?;
    let line = |library: &std::path::Path, version: &str| {
        format!("{0}: {1}: version `{version}' not found (required by {0})\n", needs.display(), library.display())
    };
    let said = line(&one, "V2") + &line(&two, "W2");
    same(context, report, "two missing versions", &needs, Want::Says(1, &said), |run| run);
    Ok(())
}
