//! One relocation of each type, its value written down from the psABI's formula (table "Relocation Types": S symbol, A addend, P place,
//! B base, Z symbol size) and confirmed by ld-linux in the same run.

use crate::elf_writer::{Binding, DynamicTag, Library, Place, Relocation, Symbol, SymbolType, Type};
use crate::harness::Report;
use crate::suite_mapping::probe::{Expected, Probe, SONAME};

/// Link-time address of the object `own`, 24 bytes.
pub const OWN: u64 = 0x2840;

/// Symbols of [`library`]: a local one, which has the name of an object of the program, before the global ones.
pub mod index {
    pub const LOCAL: u32 = 1;
    pub const OWN: u32 = 3;
    pub const ABSOLUTE: u32 = 4;
    pub const NOWHERE: u32 = 5;
    pub const PROGRAM_FUNCTION: u32 = 6;
    pub const PROGRAM_OBJECT: u32 = 7;
}

/// The ordinary library with the symbols above and a pattern where relocations will be, so that what they must not write shows.
pub fn library() -> Library {
    let mut library = Library::ordinary(SONAME);
    let local = Symbol { binding: Binding::Local, ..Symbol::object("probe_object", OWN + 0x100, 8) };
    library.symbols.insert(0, local);
    library.symbol(Symbol::object("own", OWN, 24));
    library.symbol(Symbol::absolute("absolute", 0x12345));
    library.symbol(Symbol::undefined("nowhere", Binding::Weak));
    library.symbol(Symbol::undefined("probe_answer", Binding::Global));
    library.symbol(Symbol::undefined("probe_object", Binding::Global));
    library.place(0x2a00, &[0xcc; 0x600]);
    library
}

pub fn run(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    use index::{ABSOLUTE, LOCAL, NOWHERE, OWN as OWN_INDEX, PROGRAM_FUNCTION, PROGRAM_OBJECT};
    // Type, symbol, addend, command, what it prints. The place is 0x2a00, or as the command says.
    let cases: [(&str, u32, u32, i64, &str, &str); 37] = [
        ("NONE writes nothing", Type::NONE, OWN_INDEX, 1, "r:2a00", "0xcccccccccccccccc"),
        ("RELATIVE: B + A", Type::RELATIVE, 0, 0x1000, "r:2a00", "base+0x1000"),
        ("RELATIVE writes 8 bytes", Type::RELATIVE, 0, 0x1000, "r:2a08", "0xcccccccccccccccc"),
        ("64: S + A", Type::R64, OWN_INDEX, 0, "r:2a00", "base+0x2840"),
        ("64 with an addend", Type::R64, OWN_INDEX, 8, "r:2a00", "base+0x2848"),
        ("64 with a negative addend", Type::R64, OWN_INDEX, -0x40, "r:2a00", "base+0x2800"),
        ("64 against an object of the program", Type::R64, PROGRAM_OBJECT, 3, "r:2a00", "probe_object+3"),
        ("64 against a local symbol", Type::R64, LOCAL, 4, "r:2a00", "base+0x2944"),
        ("64 against an absolute symbol", Type::R64, ABSOLUTE, 1, "r:2a00", "0x12346"),
        ("64 against an undefined weak symbol: S is 0", Type::R64, NOWHERE, 5, "r:2a00", "0x5"),
        ("64 at an odd address", Type::R64, OWN_INDEX, 0, "r:2a01", "base+0x2840"),
        ("64 across the end of a page", Type::R64, OWN_INDEX, 0, "r:2ffd", "base+0x2840"),
        ("64 in bss", Type::R64, OWN_INDEX, 0, "r:3800", "base+0x2840"),
        ("RELATIVE at an odd address", Type::RELATIVE, 0, 0x1000, "r:2a03", "base+0x1000"),
        ("32: S + A in 4 bytes", Type::R32, ABSOLUTE, 1, "r:2a00", "0xcccccccc00012346"),
        ("32 against an undefined weak symbol", Type::R32, NOWHERE, 7, "r:2a00:4", "0x7"),
        ("32 of the largest value", Type::R32, NOWHERE, 0xffff_ffff, "r:2a00", "0xccccccccffffffff"),
        ("32 at an odd address", Type::R32, ABSOLUTE, 0, "r:2a05:4", "0x12345"),
        ("PC32: S + A - P in 4 bytes", Type::PC32, OWN_INDEX, 0, "r:2a00", "0xccccccccfffffe40"),
        ("PC32 with an addend", Type::PC32, OWN_INDEX, 0x1c4, "r:2a00", "0xcccccccc00000004"),
        ("PC32 at an odd address", Type::PC32, OWN_INDEX, 0, "r:2a01:4", "0xfffffe3f"),
        ("PC64: S + A - P", Type::PC64, OWN_INDEX, 0, "r:2a00", "0xfffffffffffffe40"),
        ("PC64 with an addend", Type::PC64, OWN_INDEX, 0x1d0, "r:2a00", "0x10"),
        ("GLOB_DAT: S", Type::GLOB_DAT, OWN_INDEX, 0, "r:2a00", "base+0x2840"),
        ("GLOB_DAT against a function of the program", Type::GLOB_DAT, PROGRAM_FUNCTION, 0, "r:2a00", "probe_answer"),
        ("GLOB_DAT against an undefined weak symbol", Type::GLOB_DAT, NOWHERE, 0, "r:2a00", "0x0"),
        ("JUMP_SLOT outside DT_JMPREL: S", Type::JUMP_SLOT, PROGRAM_FUNCTION, 0, "r:2a00", "probe_answer"),
        ("JUMP_SLOT against an undefined weak symbol", Type::JUMP_SLOT, NOWHERE, 0, "r:2a00", "0x0"),
        ("SIZE32: Z + A in 4 bytes", Type::SIZE32, OWN_INDEX, 0, "r:2a00", "0xcccccccc00000018"),
        ("SIZE32 with an addend", Type::SIZE32, OWN_INDEX, -4, "r:2a00:4", "0x14"),
        ("SIZE64: Z + A", Type::SIZE64, OWN_INDEX, 0, "r:2a00", "0x18"),
        ("SIZE64 with an addend", Type::SIZE64, OWN_INDEX, 8, "r:2a00", "0x20"),
        ("SIZE64: the size of the definition, in the program", Type::SIZE64, PROGRAM_OBJECT, 0, "r:2a00", "0x18"),
        ("SIZE64 against a local symbol", Type::SIZE64, LOCAL, 0, "r:2a00", "0x8"),
        ("IRELATIVE: what the function at B + A returns", Type::IRELATIVE, 0, 0x1000, "r:2a00", "base+0x1010"),
        ("64 against an indirect function", Type::R64, 8, 0, "r:2a00", "base+0x1010"),
        ("GLOB_DAT against an indirect function", Type::GLOB_DAT, 8, 0, "r:2a00", "base+0x1010"),
    ];
    for (words, kind, symbol, addend, command, value) in cases {
        let mut library = library();
        // lea rax, [rip + 9]; ret: the address 0x1010.
        library.place(0x1000, &[0x48, 0x8d, 0x05, 9, 0, 0, 0, 0xc3]);
        library.symbol(Symbol { kind: SymbolType::Ifunc, ..Symbol::function("indirect", 0x1000) });
        let address = command.split(':').nth(1).unwrap_or_default();
        let place = if address == "2a08" { 0x2a00 } else { u64::from_str_radix(address, 16)? };
        library.relocation(place, kind, symbol, addend);
        let line = format!("r {address}: {value}");
        let lines = [line.as_str()];
        // ld-linux does not know PC64, which the psABI has and linkers emit.
        let expected = if kind == Type::PC64 { Expected::Ours(&lines) } else { Expected::Agreed(&lines) };
        probe.check(report, words, &library, &[command], expected)?;
    }

    // In DT_JMPREL, bound at start.
    let mut library = library();
    library.plt_relocations.push(Relocation::new(0x2a00, Type::JUMP_SLOT, PROGRAM_FUNCTION, 0));
    library.plt_relocations.push(Relocation::new(0x2a08, Type::JUMP_SLOT, OWN_INDEX, 0));
    const DF_BIND_NOW: u64 = 8;
    library.dynamic.extend([(DynamicTag::PLTGOT, 0x2900), (DynamicTag::FLAGS, DF_BIND_NOW)]);
    let lines = ["r 2a00: probe_answer", "r 2a08: base+0x2840"];
    probe.check(report, "JUMP_SLOT bound at start", &library, &["r:2a00", "r:2a08"], Expected::Agreed(&lines))?;

    // Nobody defines it, so its size is what the reference says: 0. ld-linux dies of SIGSEGV.
    let mut library = self::library();
    library.relocation(0x2a00, Type::SIZE64, NOWHERE, 6);
    probe.check(
        report,
        "SIZE64 against an undefined weak symbol",
        &library,
        &["r:2a00"],
        Expected::Ours(&["r 2a00: 0x6"]),
    )?;

    // An absolute symbol is not moved with its library when it is found from elsewhere either.
    let mut library = self::library();
    library.symbol(Symbol { place: Place::Absolute, ..Symbol::object("absolute_object", 0x55, 8) });
    library.relocation(0x2a00, Type::GLOB_DAT, 8, 0);
    probe.check(
        report,
        "GLOB_DAT against an absolute symbol",
        &library,
        &["r:2a00"],
        Expected::Agreed(&["r 2a00: 0x55"]),
    )
}
