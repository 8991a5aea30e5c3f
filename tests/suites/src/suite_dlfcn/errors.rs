//! dlerror: glibc's exact texts, one error a thread, what a failed dlopen leaves behind (nothing).

use super::{BESIDE, Script, node};
use crate::harness::{Build, Context, Report};
use crate::same::{Want, same, written};
use anyhow::Result;
use std::fs;

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    files(context, report, script)?;
    needs(context, report, script)?;
    let program = Build::new("dlfcn/errors.c")
        .flags(&["-O1", "-rdynamic", "-pthread"])
        .output("errors-program")
        .build(context)?;
    let want = "at start: (none)
first: ./nosuch.so: cannot open shared object file: No such file or directory
again: (none)
the later one: dlsym
after success: (none)
after dlsym: (none)
dladdr 1
dladdr leaves it: ./nosuch.so: cannot open shared object file: No such file or directory
thread: (none)
main: ./nosuch-main.so: cannot open shared object file: No such file or directory
thread: ./nosuch-thread.so: cannot open shared object file: No such file or directory
thread: (none)
end: (none)";
    same(context, report, "dlerror: read once, one a thread", &program, Want::Clean(want), |run| run);
    // A namespace of its own comes later; until then the error must say so.
    let program =
        Build::new("dlfcn/script.c").flags(&["-O1", "-rdynamic"]).output("script-namespace").build(context)?;
    for file in ["./errors/lib41.so", "libm.so.6"] {
        written(
            context,
            report,
            &format!("dlmopen of {file} in a new namespace"),
            &program,
            Want::Clean(
                "a not opened: dlmopen: name spaces other than LM_ID_BASE are not supported by ld-elf.so.1
end",
            ),
            |run| run.args([format!("namespace a {file}").as_str()]),
        );
    }
    script.same(
        context,
        report,
        "dlmopen in the base namespace",
        &["base a ./errors/lib41.so", "call a own_41"],
        &["+41", "a opened", "own_41 41", "end", "-41"],
    );
    Ok(())
}

fn files(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    let good = node(context, "errors", 41, &[], &[])?;
    let place = context.work.join("errors");
    fs::write(
        place.join("text.so"),
        "this is a text and no library, long enough to hold a header of an ELF file, all in all\n".repeat(2),
    )?;
    fs::write(place.join("empty.so"), "")?;
    fs::write(place.join("short.so"), fs::read(&good)?.get(..40).unwrap_or_default())?;
    fs::create_dir_all(place.join("directory.so"))?;
    let mut bytes = fs::read(&good)?;
    for (name, offset, value) in
        [("class.so", 4, 1), ("order.so", 5, 2), ("version.so", 6, 9), ("machine.so", 18, 183), ("type.so", 16, 1)]
    {
        let Some(byte) = bytes.get_mut(offset) else { continue };
        let old = std::mem::replace(byte, value);
        fs::write(place.join(name), &bytes)?;
        if let Some(byte) = bytes.get_mut(offset) {
            *byte = old;
        }
    }
    let cases: &[(&str, &str, &str)] = &[
        ("a missing file by path", "./errors/nosuch.so", "cannot open shared object file: No such file or directory"),
        ("a missing file by name", "libnosuch.so.7", "cannot open shared object file: No such file or directory"),
        ("a missing directory", "/nosuch/libx.so", "cannot open shared object file: No such file or directory"),
        ("not ELF", "./errors/text.so", "invalid ELF header"),
        ("an empty file", "./errors/empty.so", "file too short"),
        ("a header cut short", "./errors/short.so", "file too short"),
        ("another class", "./errors/class.so", "wrong ELF class: ELFCLASS32"),
        ("another byte order", "./errors/order.so", "ELF file data encoding not little-endian"),
        ("another ident version", "./errors/version.so", "ELF file version ident does not match current one"),
        ("a relocatable file", "./errors/type.so", "only ET_DYN and ET_EXEC can be loaded"),
        ("a directory", "./errors/directory.so", "cannot read file data: Is a directory"),
    ];
    for (name, file, text) in cases {
        script.same(
            context,
            report,
            &format!("text: {name}"),
            &[&format!("open a {file} now"), "error"],
            &[&format!("a not opened: {file}: {text}"), "error (none)"],
        );
    }
    // ld-linux says "cannot open shared object file"; the machine's name is what helps.
    script.written(
        context,
        report,
        "text: another machine",
        &["open a ./errors/machine.so now"],
        &["a not opened: ./errors/machine.so: wrong ELF machine: AArch64 (need x86-64)"],
    );
    script.same(
        context,
        report,
        "text: an executable",
        &[&format!("open a {} now", script.program.display())],
        &[&format!(
            "a not opened: {}: cannot dynamically load position-independent executable",
            script.program.display()
        )],
    );
    script.same(
        context,
        report,
        "text: a missing symbol",
        &["open a ./errors/lib41.so now", "sym a nosuch", "sym default nosuch", "sym next nosuch"],
        &[
            "+41",
            "a opened",
            "./errors/lib41.so: undefined symbol: nosuch",
            "./script: undefined symbol: nosuch",
            "./script: undefined symbol: nosuch",
            "end",
            "-41",
        ],
    );
    // ld-linux follows such a handle to wherever it leads.
    script.written(
        context,
        report,
        "dlsym with a handle that dlopen did not give",
        &["sym stack which"],
        &["invalid handle"],
    );
    Ok(())
}

fn needs(context: &Context, report: &mut Report, script: &Script) -> Result<()> {
    let kept = node(context, "errors", 42, &[], &[])?;
    let gone = node(context, "errors", 43, &[], &[])?;
    node(context, "errors", 44, &[], &[&kept, &gone])?;
    fs::remove_file(gone)?;
    script.same(
        context,
        report,
        "text: a missing dependency; what was loaded for it goes",
        &["open a ./errors/lib44.so now", "mapped lib42.so", "mapped lib44.so"],
        &[
            "a not opened: lib43.so: cannot open shared object file: No such file or directory",
            "lib42.so not mapped",
            "lib44.so not mapped",
        ],
    );
    let map = |name: &str| format!("-Wl,--version-script={}", context.work.join(name).display());
    fs::write(context.work.join("errors/one.map"), "V1 { f; };\n")?;
    fs::write(context.work.join("errors/two.map"), "V1 { };\nV2 { f; } V1;\n")?;
    let library = |script: &str, output: &str| {
        Build::new("dlfcn/bad_versions.c")
            .shared()
            .flags(&["-DDEFINES", "-Wl,-soname,libv.so"])
            .flag(map(script))
            .output(output)
            .build(context)
    };
    let two = library("errors/two.map", "errors/two/libv.so")?;
    library("errors/one.map", "errors/libv.so")?;
    Build::new("dlfcn/bad_versions.c").shared().flag(BESIDE).with(two).output("errors/libneeds.so").build(context)?;
    let file = context.work.join("./errors/libv.so");
    script.same(
        context,
        report,
        "text: a missing version",
        &["open a ./errors/libneeds.so lazy", "mapped libv.so"],
        &[
            &format!("a not opened: {}: version `V2' not found (required by ./errors/libneeds.so)", file.display()),
            "libv.so not mapped",
        ],
    );
    Ok(())
}
