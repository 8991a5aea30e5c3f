//! Suite `errors`: what a person reads when a program cannot start, and what its shell sees: text and exit status, exactly as
//! ld-linux where it is right; and that no file, however damaged, ends in a signal out of the loader. Owns the cases.

mod damage;
mod files;
mod mutants;
mod symbols;
mod traced;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::harness::{Build, Context, Report};

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    symbols::run(context, report)?;
    files::run(context, report)?;
    damage::run(context, report)?;
    mutants::run(context, report)
}

/// Builds `errors/SOURCE` as the library NAME in DIRECTORY/d, with NAME as its soname.
fn library(
    context: &Context,
    source: &str,
    directory: &str,
    name: &str,
    flags: &[&str],
    needs: &[&Path],
) -> Result<PathBuf> {
    let build = Build::new(format!("errors/{source}"))
        .shared()
        .flags(flags)
        .flag("-Wl,--no-as-needed")
        .flag(format!("-Wl,-soname,{name}"))
        .output(format!("{directory}/d/{name}"));
    needs.iter().fold(build, |build, need| build.with(need)).build(context)
}

/// Builds `errors/SOURCE` as the program of DIRECTORY, whose libraries are found in DIRECTORY/d.
fn program(context: &Context, source: &str, directory: &str, flags: &[&str], needs: &[&Path]) -> Result<PathBuf> {
    let build = Build::new(format!("errors/{source}"))
        .flags(&["-Wl,--enable-new-dtags,-rpath,$ORIGIN/d", "-Wl,--no-as-needed", "-rdynamic"])
        .flag("-Wl,--unresolved-symbols=ignore-in-shared-libs")
        .flags(flags)
        .output(format!("{directory}/program"));
    needs.iter().fold(build, |build, need| build.with(need)).build(context)
}
