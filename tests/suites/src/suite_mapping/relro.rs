//! PT_GNU_RELRO: relocated, then read-only in whole pages; a page it covers in part stays as it is at the end.

use super::probe::{Expected, Probe, SONAME};
use crate::elf_writer::{Library, ProgramHeader, Protection, Segment, SegmentKind, Type};
use crate::harness::Report;

pub fn run(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    let pages = [
        "p:0:6000", "w:2000", "w:2ff8", "w:3000", "w:37ff", "w:3800", "w:4000",
    ];
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
        library
            .relocation(0x2900, Type::RELATIVE, 0, 0x1000)
            .relocation(0x3900, Type::RELATIVE, 0, 0x1000);
        let mut commands = pages.to_vec();
        commands.extend(["r:2900", "r:3900"]);
        probe.check(
            report,
            &format!("RELRO {words}"),
            &library,
            &commands,
            Expected::Reference,
        )?;
    }

    let mut library = shape();
    library.headers.push(relro(0x2000, 0x1000));
    let commands = ["w:2000", "w:2fff", "w:3000"];
    let lines = ["w 2000: SIGSEGV", "w 2fff: SIGSEGV", "w 3000: written"];
    probe.check(
        report,
        "a write to RELRO is SIGSEGV",
        &library,
        &commands,
        Expected::Agreed(&lines),
    )
}

/// The ordinary library with three pages of data and one of bss.
fn shape() -> Library {
    let mut library = Library::ordinary(SONAME);
    library.segments.pop();
    library
        .segments
        .push(Segment::new(0x2000, 0x3000, Protection::RW).memory(0x4000));
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
