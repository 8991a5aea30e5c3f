//! Suite `symbols`: which definition a reference gets: hash tables, versions, binding and visibility, interposition, copies,
//! and the symbols of the loader itself. Every case runs under ld-linux in the same run; where glibc is known to do something
//! wrong the right answer is written down. Owns the cases.

mod binding;
mod copies;
mod hashes;
mod loader;
mod versions;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::harness::{Build, Context, Report};

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    hashes::run(context, report)?;
    versions::run(context, report)?;
    binding::run(context, report)?;
    copies::run(context, report)?;
    loader::run(context, report)
}

/// The flag that lets a program find its libraries in the directory `d` beside it.
const RUNPATH: &str = "-Wl,--enable-new-dtags,-rpath,$ORIGIN/d";

/// Builds `symbols/SOURCE` as `DIRECTORY/d/NAME`, with NAME as its soname.
fn library(context: &Context, source: &str, directory: &str, name: &str, flags: &[&str]) -> Result<PathBuf> {
    Build::new(format!("symbols/{source}"))
        .shared()
        .flags(flags)
        .flag(format!("-Wl,-soname,{name}"))
        .output(format!("{directory}/d/{name}"))
        .build(context)
}

/// Builds `symbols/SOURCE` as the program of `DIRECTORY`, needing these libraries in this order.
fn program(context: &Context, source: &str, directory: &str, flags: &[&str], libraries: &[&Path]) -> Result<PathBuf> {
    let build = Build::new(format!("symbols/{source}"))
        .flags(&[RUNPATH, "-Wl,--no-as-needed", "-Wl,--unresolved-symbols=ignore-in-shared-libs"])
        .flags(flags)
        .output(format!("{directory}/program"));
    libraries.iter().fold(build, |build, library| build.with(library)).build(context)
}
