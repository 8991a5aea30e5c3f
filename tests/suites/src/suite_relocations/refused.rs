//! Relocations that cannot be applied: one line that names the object, exit code 127, never a truncated value.

use crate::elf_writer::{Binding, DynamicTag, Library, Relocation, Symbol, Type};
use crate::harness::Report;
use crate::suite_mapping::probe::{Expected, Probe, SONAME};

const OWN: u32 = 2;
const ABSOLUTE: u32 = 3;

pub fn run(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    let unknown =
        |kind: u32, offset: u64| format!("/libodd.so: unsupported relocation type {kind:#x} at offset {offset:#x}");
    let overflow = |name: &str, kind: &str| format!("/libodd.so: Symbol `{name}' causes overflow in {kind} relocation");
    // ld-linux prints the overflows and goes on with the truncated value; the psABI asks for a check of the 32-bit fields.
    let cases: [(&str, u64, u32, u32, i64, String); 14] = [
        ("a type that the psABI does not have", 0x2a08, 0xf1, OWN, 0, unknown(0xf1, 0x2a08)),
        ("the largest type", 0x2a10, u32::MAX, 0, 0, unknown(u32::MAX, 0x2a10)),
        ("a type for the linker alone: GOTPCREL", 0x2a08, 9, OWN, 0, unknown(9, 0x2a08)),
        ("a type for the linker alone: 32S", 0x2a08, Type::R32S, ABSOLUTE, 0, unknown(Type::R32S, 0x2a08)),
        ("32 that overflows", 0x2a08, Type::R32, OWN, 0, overflow("own", "R_X86_64_32")),
        (
            "32 with an addend one too large",
            0x2a08,
            Type::R32,
            ABSOLUTE,
            0xffff_fff0,
            overflow("absolute", "R_X86_64_32"),
        ),
        ("32 of a negative value", 0x2a08, Type::R32, ABSOLUTE, -0x11, overflow("absolute", "R_X86_64_32")),
        ("PC32 that overflows", 0x2a08, Type::PC32, ABSOLUTE, 0, overflow("absolute", "R_X86_64_PC32")),
        ("SIZE32 that overflows", 0x2a08, Type::SIZE32, OWN, 0xffff_ffff, overflow("own", "R_X86_64_SIZE32")),
        ("COPY in a library", 0x2a08, Type::COPY, OWN, 0, "/libodd.so: copy relocation against `own'".into()),
        (
            "a symbol that the table does not have",
            0x2a08,
            Type::R64,
            1000,
            0,
            "/libodd.so: relocation at offset 0x2a08 names symbol 1000".into(),
        ),
        (
            "a place outside the library",
            0x10_0000,
            Type::R64,
            OWN,
            0,
            "/libodd.so: relocation of type 0x1 at offset 0x100000".into(),
        ),
        (
            "a place that ends outside the library",
            0x3ffc,
            Type::R64,
            OWN,
            0,
            "/libodd.so: relocation of type 0x1 at offset 0x3ffc".into(),
        ),
        (
            "a place in memory that is not writable",
            0x800,
            Type::RELATIVE,
            0,
            0,
            "/libodd.so: relocation of type 0x8 at offset 0x800".into(),
        ),
    ];
    for (words, place, kind, symbol, addend, text) in cases {
        let mut library = library();
        library.relocation(place, kind, symbol, addend);
        let texts = ["/probe: error while loading shared libraries: ", &text];
        probe.check(report, &format!("refused: {words}"), &library, &["r:2800"], Expected::Refused(&texts))?;
    }

    // Lazily or not, DT_JMPREL may hold a few types only.
    let mut library = library();
    library.plt_relocations.push(Relocation::new(0x2a08, Type::SIZE32, OWN, 0));
    library.dynamic.push((DynamicTag::PLTGOT, 0x2900));
    let texts = ["/libodd.so: unexpected PLT reloc type 0x20"];
    probe.check(
        report,
        "refused: a type that may not stand in DT_JMPREL",
        &library,
        &["r:2800"],
        Expected::Refused(&texts),
    )?;

    let mut library = self::library();
    library.relocation(0x2a00, Type::R64, 4, 0);
    library.symbol(Symbol::undefined("nobody_has_this", Binding::Global));
    let texts = ["/probe: symbol lookup error: ", "/libodd.so: undefined symbol: nobody_has_this\n"];
    probe.check(report, "refused: a symbol without a definition", &library, &["r:2800"], Expected::Refused(&texts))?;

    // The largest values that fit.
    let mut library = self::library();
    library.relocation(0x2a00, Type::R32, ABSOLUTE, 0xffff_ffef).relocation(0x2a08, Type::SIZE32, OWN, 0xffff_ffe7);
    let lines = ["r 2a00: 0xffffffff", "r 2a08: 0xffffffff"];
    probe.check(report, "32-bit values that just fit", &library, &["r:2a00", "r:2a08"], Expected::Agreed(&lines))
}

fn library() -> Library {
    let mut library = Library::ordinary(SONAME);
    library.symbol(Symbol::object("own", 0x2840, 24));
    library.symbol(Symbol::absolute("absolute", 0x10));
    library
}
