//! Text, data and bss in any legal split: how many PT_LOAD entries, in which order, with which sizes, and where the headers stand.
//!
//! Every library is hand-made; code in them is `mov eax, N; ret`.

use super::probe::{ANCHOR, Expected, Probe, SONAME};
use crate::elf_writer::{Library, Protection, Segment, Symbol};
use crate::harness::Report;

/// `mov eax, 7; ret`.
const RETURN_7: [u8; 6] = [0xb8, 7, 0, 0, 0, 0xc3];

/// A word of data that cannot be taken for an address, whatever the base.
const MARKER: u64 = 0x1122_3344_5566_7788;

pub fn run(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    split(report, probe)?;
    bss(report, probe)?;
    counts(report, probe)?;
    headers(report, probe)?;
    ends(report, probe)
}

fn split(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    let mut library = Library::ordinary(SONAME);
    library.place(0x1000, &RETURN_7).word(ANCHOR, MARKER);
    let commands = ["p:0:4000", "c:1000", "r:2800", "w:2800", "w:1000", "w:0", "c:2900", "z:3000:4000"];
    probe.check(
        report,
        "headers, text, data and bss as linkers make them",
        &library,
        &commands,
        Expected::Reference,
    )?;

    let mut library = Library::ordinary(SONAME);
    library.segments = vec![Segment::new(0, 0x1000, Protection::RW), Segment::new(0x1000, 0x1000, Protection::RX)];
    library.symbols = vec![Symbol::object("anchor", 0x800, 8)];
    library.dynamic_at = 0xc00;
    library.place(0x1000, &RETURN_7).word(0x800, MARKER);
    let commands = ["p:0:2000", "r:800", "w:800", "c:1000", "w:1000"];
    probe.check_at(report, "data before text", &library, 0x800, &commands, Expected::Reference)?;

    // Text at a higher address that stands before the data in the file.
    let mut library = Library::ordinary(SONAME);
    library.segments = vec![
        Segment::new(0, 0x1000, Protection::R),
        Segment::new(0x2000, 0x1000, Protection::RW).offset(0x5000),
        Segment::new(0x4000, 0x1000, Protection::RX).offset(0x1000),
    ];
    library.place(0x4000, &RETURN_7).word(ANCHOR, MARKER);
    let commands = ["p:0:5000", "r:2800", "c:4000"];
    probe.check(report, "file order other than address order", &library, &commands, Expected::Reference)?;

    // One page of the file holds the end of the text and the start of the data, and is mapped twice.
    let mut library = Library::ordinary(SONAME);
    library.segments = vec![
        Segment::new(0, 0x1000, Protection::R),
        Segment::new(0x1000, 0x400, Protection::RX),
        Segment::new(0x2400, 0x800, Protection::RW).offset(0x1400).memory(0x1000),
    ];
    library.dynamic_at = 0x2400;
    library.place(0x1000, &RETURN_7).word(ANCHOR, MARKER);
    let commands = ["p:0:4000", "c:1000", "c:2000", "r:2800", "r:2000:1", "z:2c00:3000", "z:3000:3400"];
    probe.check(report, "two segments share a page of the file", &library, &commands, Expected::Reference)?;

    // The lowest address need not be 0.
    let mut library = Library::ordinary(SONAME);
    for segment in &mut library.segments {
        segment.address += 0x10000;
    }
    library.symbols = vec![Symbol::object("anchor", 0x12800, 8)];
    library.tables_at = 0x10400;
    library.dynamic_at = 0x12000;
    library.place(0x11000, &RETURN_7).word(0x12800, MARKER).relocation(0x12900, 8, 0, 0x12800);
    let commands = ["p:10000:14000", "c:11000", "r:12800", "r:12900"];
    probe.check_at(report, "first segment at a non-zero address", &library, 0x12800, &commands, Expected::Reference)
}

fn bss(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    let mut library = Library::ordinary(SONAME);
    library.segments.push(Segment::new(0x5000, 0, Protection::RW).memory(0x2800));
    let commands = ["p:0:8000", "z:5000:8000", "w:5000", "w:7fff"];
    probe.check(
        report,
        "bss in a PT_LOAD of its own without bytes in the file",
        &library,
        &commands,
        Expected::Reference,
    )?;

    let mut library = Library::ordinary(SONAME);
    library.segments.push(Segment::new(0x5a00, 0, Protection::RW).offset(0x2a00).memory(0x1000));
    let commands = ["p:0:7000", "z:5a00:6a00", "w:5a00", "w:69ff"];
    probe.check(
        report,
        "bss in a PT_LOAD of its own that starts inside a page",
        &library,
        &commands,
        Expected::Reference,
    )?;

    // Behind the data's end and the bss' start the file holds what must not be seen.
    let mut library = Library::ordinary(SONAME);
    *library.segment(2)? = Segment::new(0x2000, 0x900, Protection::RW);
    library.segments.push(Segment::new(0x2a00, 0, Protection::RW).memory(0x1000));
    library.place_in_file(0x2000, &[0xff; 0x1000]).word(ANCHOR, MARKER);
    let commands = ["p:0:4000", "r:2800", "z:2a00:3a00", "w:2a00", "w:39ff"];
    probe.check(
        report,
        "bss in a PT_LOAD of its own in the page where the data end",
        &library,
        &commands,
        Expected::Reference,
    )?;

    // What stands behind p_filesz in the last page of the file must not be seen.
    let mut library = Library::ordinary(SONAME);
    *library.segment(2)? = Segment::new(0x2000, 0x900, Protection::RW).memory(0x2000);
    library.place_in_file(0x2000, &[0xff; 0x2000]);
    let commands = ["z:2900:4000", "r:28f8", "w:2900", "w:3fff"];
    probe.check(report, "bss tail of the last page of the file is zero", &library, &commands, Expected::Reference)?;

    let mut library = Library::ordinary(SONAME);
    *library.segment(2)? = Segment::new(0x2000, 0xfff, Protection::RW).memory(0x1000);
    library.place_in_file(0x2000, &[0xff; 0x2000]);
    let commands = ["p:0:3000", "r:2ffe:1", "r:2fff:1"];
    let lines = ["p 0:r-- 1000:r-x 2000:rw- 3000", "r 2ffe: 0xff", "r 2fff: 0x0"];
    probe.check(report, "bss of one byte", &library, &commands, Expected::Agreed(&lines))?;

    let mut library = Library::ordinary(SONAME);
    library.segments.push(Segment::new(0x5000, 0x800, Protection::R).memory(0x3000));
    library.place_in_file(0x5000, &[0xff; 0x1000]);
    let commands = ["p:0:8000", "r:57ff:1", "z:5800:8000", "w:5800", "w:6000"];
    probe.check(report, "more memory than file in a read-only segment", &library, &commands, Expected::Reference)?;

    let mut library = Library::ordinary(SONAME);
    *library.segment(1)? = Segment::new(0x1000, 0x200, Protection::RX).memory(0x800);
    library.place_in_file(0x1000, &[0xff; 0x1000]).place(0x1000, &RETURN_7);
    let commands = ["p:0:4000", "c:1000", "z:1200:1800", "w:1200"];
    probe.check(report, "more memory than file in a text segment", &library, &commands, Expected::Reference)?;

    // ld-linux maps the whole page of such an entry over the text.
    let mut library = Library::ordinary(SONAME);
    library.segments.insert(2, Segment::new(0x1800, 0, Protection::R));
    library.segments.insert(0, Segment::new(0x10_0000, 0, Protection::RW));
    library.place(0x1000, &RETURN_7).word(ANCHOR, MARKER);
    let commands = ["p:0:4000", "c:1000", "r:2800"];
    let lines = ["p 0:r-- 1000:r-x 2000:rw- 4000", "c 1000: 7", "r 2800: 0x1122334455667788"];
    probe.check(report, "PT_LOAD entries without memory", &library, &commands, Expected::Ours(&lines))
}

/// Libraries of 1 to 8 segments, without and with holes between them; no segment is writable and executable.
fn counts(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    for holes in [false, true] {
        for count in 1..=8u64 {
            let stride = if holes { 0x3000 } else { 0x1000 };
            let mut library = Library::bare(SONAME);
            library.segments = (0..count)
                .map(|index| {
                    let flags = match index % 3 {
                        // The first one holds the dynamic section, which the loader relocates in place.
                        0 => Protection::RW,
                        1 => Protection::RX,
                        _ => Protection::R,
                    };
                    Segment::new(index * stride, 0x1000, flags).offset(index * 0x1000)
                })
                .collect();
            library.symbols = vec![Symbol::object("anchor", 0x800, 8)];
            library.dynamic_at = 0xc00;
            let mut commands = vec![format!("p:0:{:x}", (count - 1) * stride + 0x1000)];
            for index in 0..count {
                let address = index * stride + 0xff8;
                library.word(address, 0x1000 + index);
                commands.push(format!("r:{address:x}"));
                if holes && index + 1 < count {
                    commands.push(format!("r:{:x}", index * stride + 0x1000));
                    commands.push(format!("r:{:x}", index * stride + 0x2ff8));
                }
            }
            let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
            let name = format!(
                "{count} PT_LOAD entries {}",
                if holes { "with holes that are not accessible" } else { "without holes" }
            );
            probe.check_at(report, &name, &library, 0x800, &commands, Expected::Reference)?;
        }
    }
    Ok(())
}

fn headers(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    let places =
        [("in the second page", 0x1800), ("behind the last segment", 0x3000), ("a megabyte into the file", 0x10_0008)];
    for (words, offset) in places {
        let mut library = Library::ordinary(SONAME);
        library.headers_offset = offset;
        library.place(0x1000, &RETURN_7).word(ANCHOR, MARKER);
        let commands = ["p:0:4000", "c:1000", "r:2800"];
        probe.check(report, &format!("program headers {words}"), &library, &commands, Expected::Reference)?;
    }
    Ok(())
}

fn ends(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    let mut library = Library::ordinary(SONAME);
    *library.segment(2)? = Segment::new(0x2000, 0x901, Protection::RW);
    library.place(0x2900, &[0x77]);
    let length = library.bytes()?.len();
    anyhow::ensure!(length == 0x2901, "the file has {length:#x} bytes");
    let commands = ["r:2900:1", "w:2900", "z:2901:3000"];
    probe.check(
        report,
        "last segment ends exactly at the end of the file",
        &library,
        &commands,
        Expected::Reference,
    )?;

    // ld-linux maps it and dies of SIGBUS later (users.md A5).
    let name = "last segment ends one byte behind the end of the file";
    let mut bytes = library.bytes()?;
    bytes.truncate(length - 1);
    let path = probe.directory(name).join(SONAME);
    std::fs::create_dir_all(probe.directory(name))?;
    std::fs::write(&path, bytes)?;
    let error = format!("/probe: error while loading shared libraries: {}: file too short", path.display());
    probe.check_present(report, name, ANCHOR, &["r:2800"], Expected::Refused(&[error.as_str()]))?;

    // gABI: PT_LOAD entries ascend in p_vaddr. ld-linux takes the first one's span for the whole (users.md A1).
    let mut library = Library::ordinary(SONAME);
    library.segments.swap(0, 2);
    probe.check(
        report,
        "PT_LOAD entries out of order",
        &library,
        &["r:2800"],
        Expected::Refused(&["/libodd.so: ", "before the end of the one before it"]),
    )
}
