//! The tables that hold relocations: DT_RELR, DT_RELACOUNT, and the hashes their symbols are found by.

use super::values::{OWN, index, library};
use crate::elf_writer::{Binding, DynamicTag, Hashes, Library, Symbol, Type};
use crate::harness::Report;
use crate::suite_mapping::probe::{Expected, Probe, SONAME};

pub fn run(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    relr(report, probe)?;
    counts(report, probe)?;
    hashes(report, probe)
}

/// DT_RELR: an even entry is an address, an odd one a bitmap of the 63 words behind (gABI).
fn relr(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    let mut library = Library::ordinary(SONAME);
    for address in (0x2a00..0x2f00).step_by(8) {
        library.word(address, 0x1000);
    }
    // The bitmap behind 0x2a00 starts at 0x2a08: bit 1 is 0x2a08, bit 3 is 0x2a18. The next one starts 63 words later, at 0x2c00.
    library.packed = vec![0x2a00, 0b1011, 1 << 63 | 0b11, 0x2e00, 0x2e10];
    let commands = [
        "r:2a00", "r:2a08", "r:2a10", "r:2a18", "r:2bf8", "r:2c00", "r:2c08", "r:2df0", "r:2df8", "r:2e00", "r:2e08",
        "r:2e10",
    ];
    let moved = ["2a00", "2a08", "2a18", "2c00", "2df0", "2e00", "2e10"];
    let lines: Vec<String> = commands
        .iter()
        .map(|command| command.trim_start_matches("r:"))
        .map(|address| format!("r {address}: {}", if moved.contains(&address) { "base+0x1000" } else { "0x1000" }))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    probe.check(report, "RELR: addresses and bitmaps", &library, &commands, Expected::Agreed(&lines))?;

    // RELR first, then RELA: a record of RELA at the same place decides.
    let mut library = Library::ordinary(SONAME);
    library.word(0x2a00, 0x1000).word(0x2a08, 0x1008).relocation(0x2a00, Type::RELATIVE, 0, 0x2000);
    library.packed = vec![0x2a00, 0b11];
    let lines = ["r 2a00: base+0x2000", "r 2a08: base+0x1008"];
    probe.check(report, "RELR and RELA in one library", &library, &["r:2a00", "r:2a08"], Expected::Agreed(&lines))
}

/// DT_RELACOUNT is a hint: right, missing or wrong, every record is applied as its type says.
fn counts(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    let lines =
        ["r 2a00: base+0x1000", "r 2a08: base+0x1008", "r 2a10: base+0x2840", "r 2a18: 0x18", "r 2a20: base+0x1010"];
    let commands = ["r:2a00", "r:2a08", "r:2a10", "r:2a18", "r:2a20"];
    for (words, count) in [
        ("right", Some(2)),
        ("missing", None),
        ("0", Some(0)),
        ("too small", Some(1)),
        ("too large", Some(4)),
        ("larger than the table", Some(1000)),
        ("2^60", Some(1 << 60)),
    ] {
        let mut library = library();
        library.relocation(0x2a00, Type::RELATIVE, 0, 0x1000).relocation(0x2a08, Type::RELATIVE, 0, 0x1008);
        library.relocation(0x2a10, Type::R64, index::OWN, 0).relocation(0x2a18, Type::SIZE64, index::OWN, 0);
        library.relocation(0x2a20, Type::RELATIVE, 0, 0x1010);
        library.dynamic.extend(count.map(|count| (DynamicTag::RELACOUNT, count)));
        // ld-linux believes a count that is too large.
        let expected = if count.unwrap_or(0) <= 2 { Expected::Agreed(&lines) } else { Expected::Ours(&lines) };
        probe.check(report, &format!("DT_RELACOUNT {words}"), &library, &commands, expected)?;
    }
    Ok(())
}

/// The symbols a relocation names are found through either hash.
fn hashes(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    for (words, hashes) in [("DT_HASH", Hashes::Sysv), ("DT_GNU_HASH", Hashes::Gnu), ("both hashes", Hashes::Both)] {
        let mut library = Library::ordinary(SONAME);
        library.symbols = vec![
            Symbol::undefined("probe_answer", Binding::Global),
            Symbol::object("anchor", 0x2800, 8),
            Symbol::object("own", OWN, 24),
        ];
        library.hashes = hashes;
        library.relocation(0x2a00, Type::R64, 3, 0).relocation(0x2a08, Type::R64, 1, 0);
        let lines = ["r 2a00: base+0x2840", "r 2a08: probe_answer"];
        probe.check(
            report,
            &format!("symbols found by {words}"),
            &library,
            &["r:2a00", "r:2a08"],
            Expected::Agreed(&lines),
        )?;
    }
    Ok(())
}
