//! Position dependent programs: addresses of functions that everybody agrees about, and copy relocations.

use anyhow::Result;

use super::{library, program};
use crate::harness::{Context, Report};
use crate::same::{Want, same};

const FIXED: [&str; 2] = ["-fno-pie", "-no-pie"];

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    equality(context, report)?;
    copies(context, report)
}

fn equality(context: &Context, report: &mut Report) -> Result<()> {
    for (kind, flags) in [("position dependent", FIXED), ("position independent", ["-fPIE", "-pie"])] {
        for lazy in ["lazy", "now"] {
            let directory = format!("equality-{}-{lazy}", kind.replace(' ', "-"));
            let flag = format!("-Wl,-z,{lazy}");
            let functions = library(context, "equality.c", &directory, "libfunctions.so", &["-DLIBRARY", &flag])?;
            let program = program(context, "equality.c", &directory, &[flags[0], flags[1], &flag], &[&functions])?;
            let name = format!("function addresses are equal everywhere, {kind} program, -z {lazy}");
            same(context, report, &name, &program, Want::Prints("1 1 1 1 3 4"), |run| run);
        }
    }
    Ok(())
}

fn copies(context: &Context, report: &mut Report) -> Result<()> {
    for relro in ["relro", "norelro"] {
        let directory = format!("copy-{relro}");
        let variables = library(context, "copy.c", &directory, "libvariables.so", &["-DLIBRARY"])?;
        let flag = format!("-Wl,-z,{relro}");
        let program = program(context, "copy.c", &directory, &[FIXED[0], FIXED[1], &flag], &[&variables])?;
        let want = Want::Prints("11 1 9 1 2 6 1 1");
        same(
            context,
            report,
            &format!("the program's copy is the variable for everybody, -z {relro}"),
            &program,
            want,
            |run| run,
        );
    }
    // The library was rebuilt with another size since the program was linked: what does not fit is worth a warning.
    for (size, was) in [("3", "smaller"), ("1", "larger")] {
        let directory = format!("copy-{was}");
        let variables = library(context, "copy.c", &directory, "libvariables.so", &["-DLIBRARY"])?;
        let program = program(context, "copy.c", &directory, &FIXED, &[&variables])?;
        let define = format!("-DSIZE={size}");
        library(context, "copy.c", &directory, "libvariables.so", &["-DLIBRARY", "-w", &define])?;
        let said = "Symbol `array' has different size in shared object, consider re-linking";
        let want = match was {
            "larger" => Want::Prints("11 1 4 1 2 6 1 1"),
            _ => Want::Warns("11 1 9 1 2 6 1 1", said),
        };
        let name = format!("a copy that is {was} than the library's variable");
        same(context, report, &name, &program, want, |run| run);
    }
    let first = library(
        context,
        "number.c",
        "copy-first",
        "libfirst.so",
        &["-DFUNCTION=unused", "-DNUMBER=20", "-DDATA=variable"],
    )?;
    let second = library(context, "copy.c", "copy-first", "libvariables.so", &["-DLIBRARY"])?;
    let program = program(context, "copy.c", "copy-first", &FIXED, &[&first, &second])?;
    let want = Want::Prints("11 1 9 1 2 6 1 1");
    same(context, report, "a copy is taken from the first definition after the program", &program, want, |run| run);
    Ok(())
}
