//! Symbols that ld-linux provides and we therefore must, and relocations packed as DT_RELR with the version that glibc
//! demands for them.

use anyhow::{Result, bail};

use super::{library, program};
use crate::elf_edit::Image;
use crate::harness::{Context, Report};
use crate::same::{Want, same, written};

/// DT_RELR (gABI).
const DT_RELR: u64 = 36;

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    // Not position dependent: a copy of _r_debug would be what it was when it was copied.
    let flags: &[&str] = &["-fPIC", "-ftls-model=global-dynamic"];
    let symbols = program(context, "loader_symbols.c", "loader-symbols", flags, &[&context.reference])?;
    let want = "r_debug 1 1 1 1\nr_debug is DT_DEBUG 1\nstack end 1\nrseq 1 0 1\ntls 1 9\nfind object 0 1";
    same(context, report, "symbols that ld-linux defines", &symbols, Want::Prints(want), |run| run);
    packed(context, report)
}

fn packed(context: &Context, report: &mut Report) -> Result<()> {
    for marked in [true, false] {
        let directory = format!("relr-{marked}");
        let pack = "-Wl,-z,pack-relative-relocs";
        let right = library(context, "relr.c", &directory, "libright.so", &[pack, "-DLIBRARY"])?;
        let program = program(context, "relr.c", &directory, &["-fPIE", "-pie", pack], &[&right])?;
        for file in [&right, &program] {
            if Image::read(file)?.dynamic(DT_RELR).is_err() {
                bail!("{}: the linker packed nothing (GNU ld 2.38 or later needed)", file.display());
            }
        }
        if marked {
            same(
                context,
                report,
                "DT_RELR with the version GLIBC_ABI_DT_RELR",
                &program,
                Want::Prints("324 324"),
                |run| run,
            );
        } else {
            // glibc refuses a file without the version; what other linkers write is as good, and we take it.
            rename_version(&program)?;
            let name = "DT_RELR without the version GLIBC_ABI_DT_RELR";
            written(context, report, name, &program, Want::Prints("324 324"), |run| run);
        }
    }
    Ok(())
}

/// Turns the need of GLIBC_ABI_DT_RELR into one of GLIBC_2.2.5.
fn rename_version(file: &std::path::Path) -> Result<()> {
    let mut image = Image::read(file)?;
    let mut found = false;
    let mut need = image.table(crate::elf_edit::tag::VERNEED)?;
    loop {
        let mut entry = need + image.number(need + 8, 4)? as usize;
        let mut known = (0, 0);
        let mut renamed = None;
        for _ in 0..image.number(need + 2, 2)? {
            match image.string(image.number(entry + 8, 4)?)?.as_str() {
                "GLIBC_2.2.5" => known = (image.number(entry, 4)?, image.number(entry + 8, 4)?),
                "GLIBC_ABI_DT_RELR" => renamed = Some(entry),
                _ => {}
            }
            entry += image.number(entry + 12, 4)? as usize;
        }
        if let Some(entry) = renamed {
            if known.0 == 0 {
                bail!("{}: no need of GLIBC_2.2.5 to borrow the name from", file.display());
            }
            image.set(entry, 4, known.0)?;
            image.set(entry + 8, 4, known.1)?;
            found = true;
        }
        let next = image.number(need + 12, 4)? as usize;
        if next == 0 {
            break;
        }
        need += next;
    }
    if !found {
        bail!("{}: no need of GLIBC_ABI_DT_RELR", file.display());
    }
    image.write(file)
}
