//! Dynamic string tokens: `$PLATFORM`, and strings that look like tokens and are none. `$ORIGIN` and `$LIB` have rows in
//! `rules`. Owns these cases.

use anyhow::Result;

use super::Store;
use super::rules::MISSING;
use crate::harness::{Context, Report, Run, Way};
use crate::same::{Want, same};

/// Strings that look like tokens and are none, or are at the edge: `spec` is the directory's name, `expanded` what it would
/// be if the token were replaced (in it, `@` is the case's directory).
const ODD_TOKENS: &[(&str, &str)] = &[
    ("$L", "lib/x86_64-linux-gnu"),
    ("${ORIGIN", "@"),
    ("$", ""),
    ("$ORIGINX", "@X"),
    ("$ORIGIN_", "@_"),
    ("$ORIGIN.d", "@.d"),
    ("${}", ""),
    ("${ORIGIN}X", "@X"),
    ("$$ORIGIN", "$@"),
    ("$origin", "@"),
    ("${ORIGIN }", "@"),
    ("$LIBX", "lib/x86_64-linux-gnuX"),
    ("$PLATFORMX", "haswellX"),
    ("$ORIGI", "@"),
    ("${LIB", "lib/x86_64-linux-gnu"),
    ("a$LIB", "alib/x86_64-linux-gnu"),
    ("$FOO", ""),
];

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report, store: &Store) -> Result<()> {
    platform(context, report, store)?;
    odd_tokens(context, report, store)
}

/// `$PLATFORM`: whichever name ld-linux gives this processor, ours must give the same.
fn platform(context: &Context, report: &mut Report, store: &Store) -> Result<()> {
    for token in ["$PLATFORM", "${PLATFORM}"] {
        let names = ["haswell", "x86_64", "xeon_phi"];
        let base = context.work.join(format!("platform{}", token.len()));
        std::fs::create_dir_all(&base)?;
        for (number, name) in (1..).zip(names) {
            store.place(number, &base.join(name))?;
        }
        let program = store.printer(context, &format!("platform{}/program", token.len()), &[])?;
        let path = format!("{}/{token}", base.display());
        let name = format!("{token} is the processor's name as ld-linux has it");
        let reference = Run::new(&program).way(Way::Reference).env("LD_LIBRARY_PATH", &path).output(context)?;
        let found = reference.text();
        same(context, report, &name, &program, Want::Prints(found.trim()), |run| run.env("LD_LIBRARY_PATH", &path));
    }
    Ok(())
}

/// Where the string is no token it is a directory of that very name; where ld-linux replaces it, so do we.
fn odd_tokens(context: &Context, report: &mut Report, store: &Store) -> Result<()> {
    for (index, (spec, expanded)) in ODD_TOKENS.iter().enumerate() {
        let base = context.work.join(format!("token{index}")).join("origin");
        let here = base.join("cwd");
        std::fs::create_dir_all(&here)?;
        store.place(7, &here.join(spec))?;
        let expanded = expanded.replace('@', &base.to_string_lossy());
        if !expanded.is_empty() {
            store.place(8, &here.join(expanded))?;
        }
        let program = store.printer(context, &format!("token{index}/origin/program"), &[])?;
        let reference =
            Run::new(&program).way(Way::Reference).env("LD_LIBRARY_PATH", spec).directory(&here).output(context)?;
        let found = reference.text();
        let name = format!("{spec} in LD_LIBRARY_PATH as ld-linux takes it");
        if found.is_empty() {
            same(context, report, &name, &program, MISSING, |run| run.env("LD_LIBRARY_PATH", spec).directory(&here));
        } else {
            same(context, report, &name, &program, Want::Prints(found.trim()), |run| {
                run.env("LD_LIBRARY_PATH", spec).directory(&here)
            });
        }
    }
    Ok(())
}
