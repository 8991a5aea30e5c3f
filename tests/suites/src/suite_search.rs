//! Suite `search`: where a needed library is found. Each rule of glibc's order has cases with a library of the same name in
//! several directories, which returns a number that tells which of them was loaded; ld-linux must find the same one in the
//! same run. Owns the cases; the directories are made afresh for each.

mod cache;
mod hwcaps;
mod identity;
mod preload;
mod rules;
mod tokens;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::harness::{Build, Context, Report};
use crate::namespace::place;

/// Runs the suite.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    let store = Store::build(context)?;
    rules::run(context, report, &store)?;
    tokens::run(context, report, &store)?;
    hwcaps::run(context, report, &store)?;
    identity::run(context, report)?;
    preload::run(context, report, &store)?;
    cache::run(context, report, &store)
}

/// The libraries all cases are made of, built once: `libw.so` that answers 1 to 9, and one of the wrong class.
pub struct Store {
    directory: PathBuf,
}

/// In a case's library list: the 32-bit file.
pub const WRONG_CLASS: u32 = 32;
/// In a case's library list: a file for another machine.
pub const WRONG_MACHINE: u32 = 183;
/// In a case's library list: a text file.
pub const NOT_ELF: u32 = 0;

impl Store {
    fn build(context: &Context) -> Result<Store> {
        let directory = context.work.join("store");
        for number in 1..=9 {
            Build::new("search/which.c")
                .shared()
                .flag(format!("-DNUMBER={number}"))
                .flag("-Wl,-soname,libw.so")
                .output(format!("store/{number}/libw.so"))
                .build(context)?;
        }
        // The 32-bit compiler needs no 32-bit library for this.
        Build::new("search/which.c")
            .shared()
            .flags(&["-m32", "-nostdlib", "-DNUMBER=32", "-Wl,-soname,libw.so"])
            .output(format!("store/{WRONG_CLASS}/libw.so"))
            .build(context)?;
        let mut foreign = crate::elf_edit::Image::read(&directory.join("1/libw.so"))?;
        foreign.set(18, 2, u64::from(WRONG_MACHINE))?;
        std::fs::create_dir_all(directory.join(WRONG_MACHINE.to_string()))?;
        foreign.write(&directory.join(WRONG_MACHINE.to_string()).join("libw.so"))?;
        std::fs::create_dir_all(directory.join(NOT_ELF.to_string()))?;
        std::fs::write(
            directory.join(NOT_ELF.to_string()).join("libw.so"),
            "INPUT(-lw) /* a linker script is not a library, and is longer than an ELF header */\n",
        )?;
        Ok(Store { directory })
    }

    /// The file that answers `number`.
    pub fn library(&self, number: u32) -> PathBuf {
        self.directory.join(number.to_string()).join("libw.so")
    }

    /// Copies the library that answers `number` into `directory`.
    pub fn place(&self, number: u32, directory: &Path) -> Result<()> {
        place(&self.library(number), &directory.join("libw.so"))
    }

    /// Builds a program that prints the answer of `libw.so`, with these flags.
    pub fn printer(&self, context: &Context, output: &str, flags: &[&str]) -> Result<PathBuf> {
        Build::new("search/print.c").flags(flags).with(self.library(1)).output(output).build(context)
    }
}
