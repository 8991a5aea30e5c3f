//! Damaged libraries, one class of damage a case: each is refused with one line and exit status 127, before any code of the
//! library runs, and never by a signal. ld-linux dies or goes on in many of these, so what is right is written here.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::traced::{End, acceptable, one_line, trace};
use super::{library, program};
use crate::elf_edit::{Image, PT_DYNAMIC, PT_LOAD, RELA_SIZE, tag};
use crate::harness::{Context, Report, Run, Way};

/// A number that no address, offset or size in a small library can be.
const FAR: u64 = 0x1234_5678_9000;
const PT_TLS: u32 = 7;
const PT_GNU_RELRO: u32 = 0x6474_e552;
const DT_SONAME: u64 = 14;
const DT_PLTRELSZ: u64 = 2;
const DT_PLTREL: u64 = 20;

type Edit = fn(&mut Image) -> Result<()>;

/// Offset in a program header of p_offset, p_vaddr, p_filesz, p_memsz, p_align (gABI, `Elf64_Phdr`).
const OFFSET: usize = 8;
const ADDRESS: usize = 16;
const FILE_SIZE: usize = 32;
const MEMORY_SIZE: usize = 40;
const ALIGNMENT: usize = 48;

/// Overwrites a field of a program header.
fn segment(image: &mut Image, kind: u32, skip: usize, field: usize, value: u64) -> Result<()> {
    let header = image.program_header(kind, skip)?;
    image.set(header + field, 8, value)
}

const REFUSED: &[(&str, Edit)] = &[
    ("two PT_LOADs in the wrong order", |image| {
        let (first, second) = (image.program_header(PT_LOAD, 1)?, image.program_header(PT_LOAD, 2)?);
        for field in (0..56).step_by(8) {
            let (one, other) = (image.number(first + field, 8)?, image.number(second + field, 8)?);
            image.set(first + field, 8, other)?;
            image.set(second + field, 8, one)?;
        }
        Ok(())
    }),
    ("two PT_LOADs that overlap", |image| {
        let address = image.number(image.program_header(PT_LOAD, 1)? + ADDRESS, 8)?;
        let offset = image.number(image.program_header(PT_LOAD, 2)? + OFFSET, 8)?;
        segment(image, PT_LOAD, 2, ADDRESS, address + (offset & 0xfff))
    }),
    ("a file size larger than the memory size", |image| {
        let size = image.number(image.program_header(PT_LOAD, 3)? + MEMORY_SIZE, 8)?;
        segment(image, PT_LOAD, 3, FILE_SIZE, size + 8)
    }),
    ("a memory size beyond the address space", |image| segment(image, PT_LOAD, 3, MEMORY_SIZE, 1 << 62)),
    ("a segment that wraps around", |image| segment(image, PT_LOAD, 3, MEMORY_SIZE, u64::MAX - 0x1000)),
    ("an address beyond the address space", |image| {
        let low = image.number(image.program_header(PT_LOAD, 3)? + ADDRESS, 8)? & 0xfff;
        segment(image, PT_LOAD, 3, ADDRESS, 0xffff_ffff_ffff_f000 | low)
    }),
    ("an offset beyond the end of the file", |image| {
        let low = image.number(image.program_header(PT_LOAD, 1)? + OFFSET, 8)? & 0xfff;
        segment(image, PT_LOAD, 1, OFFSET, 0x1000_0000 | low)
    }),
    ("an alignment of 2^63", |image| segment(image, PT_LOAD, 0, ALIGNMENT, 1 << 63)),
    ("program headers beyond the end of the file", |image| image.set(32, 8, FAR)),
    ("program headers at the last possible offset", |image| image.set(32, 8, u64::MAX - 8)),
    ("65535 program headers", |image| image.set(56, 2, 0xffff)),
    ("no program headers", |image| image.set(56, 2, 0)),
    ("a dynamic section outside the segments", |image| segment(image, PT_DYNAMIC, 0, ADDRESS, FAR)),
    ("a dynamic section without an end", |image| {
        for entry in image.dynamic_entries()? {
            if entry.tag == tag::NULL {
                image.set(entry.offset, 8, tag::UNKNOWN)?;
            }
        }
        Ok(())
    }),
    ("a dynamic section of no size", |image| {
        segment(image, PT_DYNAMIC, 0, FILE_SIZE, 0)?;
        segment(image, PT_DYNAMIC, 0, MEMORY_SIZE, 0)
    }),
    ("DT_STRTAB outside the segments", |image| image.set_dynamic(tag::STRTAB, FAR)),
    ("no DT_STRTAB", |image| image.retag(tag::STRTAB, tag::UNKNOWN)),
    ("DT_STRSZ 0", |image| image.set_dynamic(tag::STRSZ, 0)),
    ("DT_STRSZ beyond the segment", |image| image.set_dynamic(tag::STRSZ, FAR)),
    ("DT_SYMTAB outside the segments", |image| image.set_dynamic(tag::SYMTAB, FAR)),
    ("no DT_SYMTAB", |image| image.retag(tag::SYMTAB, tag::UNKNOWN)),
    ("DT_SYMENT 0", |image| image.set_dynamic(tag::SYMENT, 0)),
    ("DT_SYMENT 23", |image| image.set_dynamic(tag::SYMENT, 23)),
    ("DT_NEEDED outside the strings", |image| image.set_dynamic(tag::NEEDED, 0x7fff_ffff)),
    ("DT_SONAME outside the strings", |image| image.set_dynamic(DT_SONAME, 0x7fff_ffff)),
    ("DT_RELA outside the segments", |image| image.set_dynamic(tag::RELA, FAR)),
    ("DT_RELASZ beyond the segment", |image| image.set_dynamic(tag::RELASZ, 24 << 32)),
    ("DT_RELASZ not a multiple", |image| image.set_dynamic(tag::RELASZ, 25)),
    ("DT_RELAENT 0", |image| image.set_dynamic(tag::RELAENT, 0)),
    ("DT_RELAENT 16", |image| image.set_dynamic(tag::RELAENT, 16)),
    ("DT_JMPREL outside the segments", |image| image.set_dynamic(tag::JMPREL, FAR)),
    ("DT_PLTRELSZ beyond the segment", |image| image.set_dynamic(DT_PLTRELSZ, 24 << 32)),
    ("DT_PLTREL neither RELA nor REL", |image| image.set_dynamic(DT_PLTREL, 99)),
    ("DT_GNU_HASH outside the segments", |image| image.set_dynamic(tag::GNU_HASH, FAR)),
    ("DT_HASH outside the segments, no DT_GNU_HASH", |image| {
        image.retag(tag::GNU_HASH, tag::UNKNOWN)?;
        image.set_dynamic(tag::HASH, FAR)
    }),
    ("DT_VERSYM outside the segments", |image| image.set_dynamic(tag::VERSYM, FAR)),
    ("DT_VERNEED outside the segments", |image| image.set_dynamic(tag::VERNEED, FAR)),
    ("a version need that names no library of the file", |image| {
        let need = image.table(tag::VERNEED)?;
        image.set(need + 4, 4, 0x7fff_ffff)
    }),
    ("DT_INIT outside the code", |image| image.set_dynamic(tag::INIT, 0x10)),
    ("DT_INIT_ARRAY outside the segments", |image| image.set_dynamic(tag::INIT_ARRAY, FAR)),
    ("DT_INIT_ARRAYSZ beyond the segment", |image| image.set_dynamic(tag::INIT_ARRAYSZ, 8 << 32)),
    ("a GNU hash with more buckets than the file", |image| set_gnu_hash(image, 0, 0x7fff_ffff)),
    ("a GNU hash with a filter larger than the file", |image| set_gnu_hash(image, 8, 0x4000_0000)),
    ("a GNU hash with a filter size of 3", |image| set_gnu_hash(image, 8, 3)),
    ("a GNU hash with a filter size of 0", |image| set_gnu_hash(image, 8, 0)),
    ("a relocation outside the segments", |image| set_relocation(image, 0, 8, FAR)),
    ("a relocation at the last possible address", |image| set_relocation(image, 0, 8, u64::MAX - 3)),
    ("a relocation of the code, which is read-only", |image| {
        let address = image.number(image.program_header(PT_LOAD, 1)? + ADDRESS, 8)?;
        set_relocation(image, 0, 8, address)
    }),
    ("a relocation type that does not exist", |image| set_relocation(image, 8, 4, 0xee)),
    ("a relocation of a symbol beyond the table", |image| {
        let last = image.dynamic(tag::RELASZ)?.value as usize - RELA_SIZE;
        let table = image.table(tag::RELA)?;
        image.set(table + last + 12, 4, 0x00ff_ffff)
    }),
    ("a relocation of the PLT beyond the segments", |image| {
        let table = image.table(tag::JMPREL)?;
        image.set(table, 8, FAR)
    }),
    ("a TLS image larger than its memory", |image| {
        let size = image.number(image.program_header(PT_TLS, 0)? + MEMORY_SIZE, 8)?;
        segment(image, PT_TLS, 0, FILE_SIZE, size + 0x1000)
    }),
    ("a TLS image outside the segments", |image| segment(image, PT_TLS, 0, ADDRESS, FAR)),
    ("a TLS block of 2^60 bytes", |image| segment(image, PT_TLS, 0, MEMORY_SIZE, 1 << 60)),
    ("a TLS alignment that is no power of two", |image| segment(image, PT_TLS, 0, ALIGNMENT, 24)),
    ("a TLS alignment of 2^40", |image| segment(image, PT_TLS, 0, ALIGNMENT, 1 << 40)),
    ("RELRO outside the segments", |image| segment(image, PT_GNU_RELRO, 0, ADDRESS, FAR)),
];

/// Damage that need not be noticed, but must not harm: the end is success or one line.
const HARMLESS: &[(&str, Edit)] = &[
    ("section headers beyond the end of the file", |image| image.set(40, 8, FAR)),
    ("no section headers", |image| {
        image.set(40, 8, 0)?;
        image.set(60, 2, 0)
    }),
    ("an entry point beyond the address space", |image| image.set(24, 8, FAR)),
    ("a GNU hash with no buckets", |image| set_gnu_hash(image, 0, 0)),
    ("a SysV hash with no buckets, no DT_GNU_HASH", |image| {
        image.retag(tag::GNU_HASH, tag::UNKNOWN)?;
        let table = image.table(tag::HASH)?;
        image.set(table, 4, 0)
    }),
    ("a SysV hash whose chains run in circles, no DT_GNU_HASH", |image| {
        image.retag(tag::GNU_HASH, tag::UNKNOWN)?;
        let table = image.table(tag::HASH)?;
        let (buckets, chains) = (image.number(table, 4)? as usize, image.number(table + 4, 4)? as usize);
        for index in 0..chains {
            image.set(table + 8 + 4 * (buckets + index), 4, index as u64)?;
        }
        Ok(())
    }),
    ("a GNU hash whose chains have no end", |image| {
        let table = image.table(tag::GNU_HASH)?;
        let (buckets, first, words) =
            (image.number(table, 4)?, image.number(table + 4, 4)?, image.number(table + 8, 4)?);
        let chains = table + 16 + 8 * words as usize + 4 * buckets as usize;
        for index in 0..image.symbol_count()? - first as usize {
            let hash = image.number(chains + 4 * index, 4)?;
            image.set(chains + 4 * index, 4, hash & !1)?;
        }
        Ok(())
    }),
    ("buckets beyond the symbols", |image| {
        let table = image.table(tag::GNU_HASH)?;
        let (buckets, words) = (image.number(table, 4)? as usize, image.number(table + 8, 4)? as usize);
        for index in 0..buckets {
            image.set(table + 16 + 8 * words + 4 * index, 4, 0x00ff_ffff)?;
        }
        Ok(())
    }),
    ("version needs that run in circles", |image| {
        let need = image.table(tag::VERNEED)?;
        image.set(need + 12, 4, 0)?;
        let entry = need + image.number(need + 8, 4)? as usize;
        image.set(need + 2, 2, 0xffff)?;
        image.set(entry + 12, 4, 0)
    }),
    ("symbol names outside the strings", |image| {
        let table = image.table(tag::SYMTAB)?;
        for index in 1..image.symbol_count()? {
            image.set(table + 24 * index, 4, 0xffff_fff0)?;
        }
        Ok(())
    }),
    ("symbol values beyond the segments", |image| {
        let (symbol, _) = image.symbol("answer")?;
        image.set(symbol + 8, 8, FAR)
    }),
];

fn set_gnu_hash(image: &mut Image, field: usize, value: u64) -> Result<()> {
    let table = image.table(tag::GNU_HASH)?;
    image.set(table + field, 4, value)
}

/// Overwrites a field (8: r_info's type, 0: r_offset) of the first relocation.
fn set_relocation(image: &mut Image, field: usize, width: usize, value: u64) -> Result<()> {
    let table = image.table(tag::RELA)?;
    image.set(table + field, width, value)
}

/// Runs the cases.
pub fn run(context: &Context, report: &mut Report) -> Result<()> {
    let target =
        library(context, "target.c", "damage", "libtarget.so", &["-Wl,--hash-style=both", "-Wl,-z,lazy", "-O1"], &[])?;
    let program = program(context, "main.c", "damage", &[], &[&target])?;
    let good = Image::read(&target)?;
    let healthy = Run::new(&program).output(context)?;
    report.check(
        "the undamaged library runs",
        if healthy.text() == "init\nmain\nanswer 2\nfini\n" { Ok(()) } else { Err(healthy.describe()) },
    );
    for (what, edit) in REFUSED {
        let result = damaged(context, &good, *edit, &target, &program, true);
        report.check(format!("refused: {what}"), result.map_err(|error| format!("{error:#}")));
    }
    for (what, edit) in HARMLESS {
        let result = damaged(context, &good, *edit, &target, &program, false);
        report.check(format!("harmless: {what}"), result.map_err(|error| format!("{error:#}")));
    }
    truncated(context, report, &good, &target, &program)?;
    good.write(&target)
}

/// Damages the library in place and runs the program in both ways, and `--list`.
fn damaged(context: &Context, good: &Image, edit: Edit, target: &Path, program: &Path, refused: bool) -> Result<()> {
    let mut bad = good.clone();
    edit(&mut bad).context("the edit")?;
    bad.write(target)?;
    for way in [Way::Direct, Way::Interpreter] {
        let run = trace(context, &Run::new(program).way(way))?;
        acceptable(&run).map_err(anyhow::Error::msg)?;
        if refused {
            let right = matches!(run.end, End::Exit(127)) && run.stdout.is_empty() && one_line(&run.stderr);
            anyhow::ensure!(
                right,
                "expected one line and status 127\ngot      stdout: {:?}\nstderr: {:?}",
                run.stdout,
                run.stderr
            );
            anyhow::ensure!(
                run.stderr.contains("libtarget.so"),
                "the line does not name the library: {:?}",
                run.stderr
            );
        }
    }
    listed(context, program)
}

/// `--list` of the program: bounded, no signal, no code of the library.
pub fn listed(context: &Context, program: &Path) -> Result<()> {
    let run = trace(context, &Run::new(program).way(Way::Direct).loader_options(["--list"]))?;
    let told = format!("stdout: {:?}\nstderr: {:?}", run.stdout, run.stderr);
    match run.end {
        End::Exit(0) if !run.stdout.contains("init") => Ok(()),
        End::Exit(1 | 127) if !run.stdout.contains("init") && run.stderr.lines().count() <= 1 => Ok(()),
        End::Exit(status) => anyhow::bail!("--list: status {status}\n{told}"),
        End::SignalElsewhere => {
            anyhow::bail!("--list: a signal, so code of the library ran\n{told}")
        }
        End::Abort => anyhow::bail!("--list: SIGABRT\n{told}"),
        End::SignalInLoader(place) | End::Nowhere(place) => anyhow::bail!("--list: {place}\n{told}"),
        End::TimedOut => anyhow::bail!("--list: no end\n{told}"),
    }
}

/// Every length in steps of 256 bytes: what is cut off is noticed, or was not needed.
fn truncated(context: &Context, report: &mut Report, good: &Image, target: &Path, program: &Path) -> Result<()> {
    let mut needed = 0;
    for header in good.program_headers()? {
        if good.number(header, 4)? == u64::from(PT_LOAD) {
            needed = needed.max(good.number(header + OFFSET, 8)? + good.number(header + FILE_SIZE, 8)?);
        }
    }
    for length in (0..good.bytes().len()).step_by(256) {
        let mut bad = good.clone();
        bad.truncate(length);
        bad.write(target)?;
        let run = trace(context, &Run::new(program))?;
        let result = acceptable(&run).and_then(|()| {
            let said = ["file too short", "cannot read file data"]
                .iter()
                .any(|text| run.stderr.ends_with(&format!("libtarget.so: {text}\n")));
            let refused = matches!(run.end, End::Exit(127)) && said;
            let ran = matches!(run.end, End::Exit(0)) && run.stdout.contains("answer 2");
            let right = if (length as u64) < needed { refused } else { ran };
            if right {
                Ok(())
            } else {
                Err(format!("needed {needed} bytes\nstdout: {:?}\nstderr: {:?}", run.stdout, run.stderr))
            }
        });
        report.check(format!("cut to {length} bytes"), result);
    }
    Ok(())
}
