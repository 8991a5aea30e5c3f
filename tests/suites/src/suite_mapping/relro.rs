//! PT_GNU_RELRO: relocated, then read-only in whole pages; a page it covers in part stays as it is at the end.

use super::probe::{Expected, Probe, SONAME};
use crate::elf_writer::{Library, ProgramHeader, Protection, Segment, SegmentKind, Type};
use crate::harness::{Build, Context, Linker, Report, Run, WAYS, Way};

pub fn run(context: &Context, report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    let pages = ["p:0:6000", "w:2000", "w:2ff8", "w:3000", "w:37ff", "w:3800", "w:4000"];
    for (words, address, size) in [
        ("of one page", 0x2000, 0x1000),
        ("of two pages", 0x2000, 0x2000),
        ("whose end is not page-aligned", 0x2000, 0x1800),
        ("within one page", 0x2000, 0x800),
        ("whose start is not page-aligned", 0x2800, 0x800),
        ("of no bytes", 0x2000, 0),
        ("in the middle of the segment", 0x3000, 0x1000),
        ("up to the end of the segment", 0x3000, 0x3000),
    ] {
        let mut library = shape();
        library.headers.push(relro(address, size));
        // A relocation inside: RELRO comes after it.
        library.relocation(0x2900, Type::RELATIVE, 0, 0x1000).relocation(0x3900, Type::RELATIVE, 0, 0x1000);
        let mut commands = pages.to_vec();
        commands.extend(["r:2900", "r:3900"]);
        probe.check(report, &format!("RELRO {words}"), &library, &commands, Expected::Reference)?;
    }

    let mut library = shape();
    library.headers.push(relro(0x2000, 0x1000));
    let commands = ["w:2000", "w:2fff", "w:3000"];
    let lines = ["w 2000: SIGSEGV", "w 2fff: SIGSEGV", "w 3000: written"];
    probe.check(report, "a write to RELRO is SIGSEGV", &library, &commands, Expected::Agreed(&lines))?;
    linked(context, report)
}

/// The program's own RELRO and a library's as linkers lay them out.
fn linked(context: &Context, report: &mut Report) -> anyhow::Result<()> {
    for linker in [Linker::Bfd, Linker::Lld, Linker::Mold] {
        for (kind, flag) in [("PIE", "-pie"), ("non-PIE", "-no-pie")] {
            let directory = format!("relro/{}/{kind}", linker.name());
            let library = Build::new("mapping/relro.c")
                .shared()
                .linker(linker)
                .flags(&["-O1", "-DLIBRARY", "-Wl,-z,relro"])
                .output(format!("{directory}/librelro.so"))
                .build(context)?;
            let program = Build::new("mapping/relro.c")
                .linker(linker)
                // Through the GOT: the library's constants are not copied into a program that is not position-independent.
                .flags(&["-O1", "-Wl,-z,relro", "-Wl,-rpath,$ORIGIN", "-fPIC"])
                .flag(flag)
                .with(library)
                .output(format!("{directory}/relro"))
                .build(context)?;
            let reference = Run::new(&program).way(Way::Reference).output(context)?;
            let text = reference.text();
            anyhow::ensure!(
                text.matches("SIGSEGV").count() == 4 && text.matches("written").count() == 2,
                "ld-linux does otherwise: {}",
                reference.describe()
            );
            for (way, bind) in WAYS {
                let outcome = Run::new(&program).way(way).bind(bind).output(context)?;
                let name = format!("RELRO of a {kind} program and its library by {}, {way:?} {bind:?}", linker.name());
                report.check(name, outcome.same_as(&reference));
            }
        }
    }
    Ok(())
}

/// The ordinary library with three pages of data and one of bss.
fn shape() -> Library {
    let mut library = Library::ordinary(SONAME);
    library.segments.pop();
    library.segments.push(Segment::new(0x2000, 0x3000, Protection::RW).memory(0x4000));
    library
}

fn relro(address: u64, size: u64) -> ProgramHeader {
    ProgramHeader {
        kind: SegmentKind::GNU_RELRO,
        flags: Protection::R,
        offset: address,
        address,
        file_size: size,
        memory_size: size,
        alignment: 1,
    }
}
