//! LD_THP: a large writable segment that is read into memory of its own, with its data, zeros and relocations, is given back by
//! dlclose; a smaller one, and any without the variable, is mapped from the file. Whether the system has huge pages to give is
//! not asked: the memory is the same without.

use crate::harness::{Build, Context, Report, Run, WAYS, Way};
use crate::same::label;
use std::path::Path;

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let program = Build::new("mapping/huge.c").flags(&["-O1"]).output("huge").build(context)?;
    for (name, flags) in [("as linked", &[][..]), ("bound at start", &["-Wl,-z,relro,-z,now"][..])] {
        let library = Build::new("mapping/huge_library.c").shared().flags(&["-O1"]).flags(flags);
        let library = library.output(format!("libhuge-{}.so", flags.len())).build(context)?;
        report.equal(
            format!("{name}, ld-linux"),
            printed(context, &program, &library, Way::Reference, ""),
            want("file"),
        );
        for (size, kind) in [("", "file"), ("0", "file"), ("1048576", "anonymous"), ("1073741824", "file")] {
            for (way, bind) in WAYS {
                let run = Run::new(&program).way(way).bind(bind).env("LD_THP", size).args([&library]);
                let outcome = run.output(context)?;
                let name = format!("{name}, LD_THP={size} ({})", label(way, bind));
                report.equal(name, outcome.text().trim().to_owned(), want(kind));
            }
        }
    }
    Ok(())
}

fn want(kind: &str) -> String {
    format!("{kind} nothing nothing nothing")
}

fn printed(context: &Context, program: &Path, library: &Path, way: Way, size: &str) -> String {
    let run = Run::new(program).way(way).env("LD_THP", size).args([library]);
    run.output(context).map_or_else(|error| error.to_string(), |outcome| outcome.text().trim().to_owned())
}
