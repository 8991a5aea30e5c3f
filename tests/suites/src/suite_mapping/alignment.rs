//! p_align: honoured up to 1 GiB, refused in words above, and no more asked of a file than congruence modulo the page size.

use super::probe::{ANCHOR, Expected, Probe, SONAME};
use crate::elf_writer::{Library, Protection};
use crate::harness::Report;

pub fn run(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    for (words, alignment) in [("64 KiB", 0x1_0000), ("2 MiB", 0x20_0000), ("1 GiB", 0x4000_0000)] {
        // Only one segment asks: the largest p_align counts. The segments stand at offsets equal to their addresses.
        let name = format!("p_align of {words}");
        let modulo = format!("a:{alignment:x}");
        let commands = [modulo.as_str(), "p:0:4000", "r:2800", "w:2800"];
        let aligned = format!("a {alignment:x}: 0x0");
        let lines = [aligned.as_str(), "p 0:r-- 1000:r-x 2000:rw- 4000", "r 2800: 0x1234", "w 2800: written"];
        for index in 0..3 {
            let mut library = Library::ordinary(SONAME);
            library.segment(index)?.alignment = alignment;
            library.word(ANCHOR, 0x1234);
            let name = format!("{name} in segment {index}");
            probe.check(report, &name, &library, &commands, Expected::Agreed(&lines))?;
        }
    }

    let mut library = Library::ordinary(SONAME);
    for segment in &mut library.segments {
        segment.alignment = 0x20_0000;
    }
    library.segment(1)?.offset = 0x5000;
    library.segment(2)?.offset = 0x3000;
    library.word(ANCHOR, 0x1234).place(0x1000, &[0xb8, 7, 0, 0, 0, 0xc3]);
    let commands = ["a:200000", "p:0:4000", "r:2800", "c:1000"];
    let name = "p_align of 2 MiB with offset and address congruent modulo the page size only";
    let lines = ["a 200000: 0x0", "p 0:r-- 1000:r-x 2000:rw- 4000", "r 2800: 0x1234", "c 1000: 7"];
    probe.check(report, name, &library, &commands, Expected::Agreed(&lines))?;

    for alignment in [0, 1, 0x10] {
        let mut library = Library::ordinary(SONAME);
        for segment in &mut library.segments {
            segment.alignment = alignment;
        }
        library.word(ANCHOR, 0x1234);
        // gABI: 0 and 1 mean no alignment.
        let lines = ["p 0:r-- 1000:r-x 2000:rw- 4000", "r 2800: 0x1234"];
        let name = format!("p_align of {alignment}");
        probe.check(report, &name, &library, &["p:0:4000", "r:2800"], Expected::Agreed(&lines))?;
    }

    // ld-linux maps these and leaves the alignment out, which then hurts who asked for it.
    for (words, alignment) in [("2 GiB", 0x8000_0000u64), ("2^63", 1 << 63)] {
        let mut library = Library::ordinary(SONAME);
        library.segment(0)?.alignment = alignment;
        let texts = ["/probe: error while loading shared libraries: ", "/libodd.so: ", "larger than 1 GiB"];
        probe.check(
            report,
            &format!("p_align of {words} is refused"),
            &library,
            &["r:2800"],
            Expected::Refused(&texts),
        )?;
    }

    let mut library = Library::ordinary(SONAME);
    library.segment(0)?.alignment = 0x3000;
    let texts = ["/libodd.so: ", "0x3000 is not a power of two"];
    probe.check(
        report,
        "p_align that is no power of two is refused",
        &library,
        &["r:2800"],
        Expected::Refused(&texts),
    )?;

    let mut library = Library::ordinary(SONAME);
    library.segment(2)?.offset = 0x2800;
    library.segment(2)?.flags = Protection::RW;
    let texts = ["libodd.so: ELF load command address/offset not page-aligned"];
    probe.check(
        report,
        "offset and address not congruent modulo the page size are refused",
        &library,
        &["r:2800"],
        Expected::Refused(&texts),
    )
}
