//! TPOFF64, DTPMOD64, DTPOFF64 and TLSDESC: records against symbols, local symbols, no symbol and undefined weak ones, used by code that
//! loads the variable.

use crate::elf_writer::{Binding, Library, ProgramHeader, Protection, SegmentKind, Symbol, SymbolType, Type};
use crate::harness::Report;
use crate::suite_mapping::probe::{Expected, Probe, SONAME};

/// mov rax, [rip + 0x19f9] (the word at 0x2a00 seen from 0x1000); mov eax, fs:[rax]; ret.
const LOAD_BY_OFFSET: [u8; 11] = [0x48, 0x8b, 0x05, 0xf9, 0x19, 0, 0, 0x64, 0x8b, 0x00, 0xc3];
/// lea rax, [rip + 0x19f9] (the descriptor at 0x2a00); call [rax]; mov eax, fs:[rax]; ret, the stack aligned for the call.
const LOAD_BY_DESCRIPTOR: [u8; 21] =
    [0x48, 0x8d, 0x05, 0xf9, 0x19, 0, 0, 0x48, 0x83, 0xec, 8, 0xff, 0x10, 0x48, 0x83, 0xc4, 8, 0x64, 0x8b, 0x00, 0xc3];
/// lea rax, [rip + 0x19f9]; call [rax]; add rax, fs:[0]; ret: the address in place of the value.
const ADDRESS_BY_DESCRIPTOR: [u8; 27] = [
    0x48, 0x8d, 0x05, 0xf9, 0x19, 0, 0, 0x48, 0x83, 0xec, 8, 0xff, 0x10, 0x48, 0x83, 0xc4, 8, 0x64, 0x48, 0x03, 0x04,
    0x25, 0, 0, 0, 0, 0xc3,
];

/// Symbols of [`library`].
mod index {
    pub const LOCAL: u32 = 1;
    pub const GLOBAL: u32 = 3;
    pub const NOWHERE: u32 = 4;
}

pub fn run(report: &mut Report, probe: &Probe) -> anyhow::Result<()> {
    // The image holds 0x101 in word 0, 0x202 in word 1 and so on; `global` is word 2, the local symbol word 1.
    let places = [
        ("a global symbol", index::GLOBAL, 0, 0x303),
        ("a global symbol and an addend", index::GLOBAL, 8, 0x404),
        ("a local symbol", index::LOCAL, 0, 0x202),
        ("no symbol", 0, 0, 0x101),
        ("no symbol and an addend", 0, 0x10, 0x303),
    ];
    for (kind_words, kind, code) in
        [("TPOFF64", Type::TPOFF64, &LOAD_BY_OFFSET[..]), ("TLSDESC", Type::TLSDESC, &LOAD_BY_DESCRIPTOR[..])]
    {
        for (words, symbol, addend, value) in places {
            let mut library = library();
            library.place(0x1000, code).relocation(0x2a00, kind, symbol, addend);
            let line = format!("c 1000: {value}");
            probe.check(
                report,
                &format!("{kind_words} against {words}"),
                &library,
                &["c:1000"],
                Expected::Agreed(&[line.as_str()]),
            )?;
        }
    }

    // psABI: the descriptor of an undefined weak variable yields address 0, plus the addend.
    let mut library = library();
    library.place(0x1000, &ADDRESS_BY_DESCRIPTOR).relocation(0x2a00, Type::TLSDESC, index::NOWHERE, 0x21);
    probe.check(
        report,
        "TLSDESC against an undefined weak symbol",
        &library,
        &["c:1000"],
        Expected::Agreed(&["c 1000: 33"]),
    )?;

    for (words, symbol, addend, offset) in [
        ("a global symbol", index::GLOBAL, 0, 0x10),
        ("a global symbol and an addend", index::GLOBAL, 4, 0x14),
        ("a local symbol", index::LOCAL, 0, 0x8),
    ] {
        let mut library = self::library();
        library.relocation(0x2a00, Type::DTPOFF64, symbol, addend);
        let line = format!("r 2a00: {offset:#x}");
        probe.check(
            report,
            &format!("DTPOFF64 against {words}"),
            &library,
            &["r:2a00"],
            Expected::Agreed(&[line.as_str()]),
        )?;
    }
    // The program has no thread-local variable, so the library is module 1.
    for (words, symbol) in [("a global symbol", index::GLOBAL), ("a local symbol", index::LOCAL), ("no symbol", 0)] {
        let mut library = self::library();
        library.relocation(0x2a00, Type::DTPMOD64, symbol, 0);
        probe.check(
            report,
            &format!("DTPMOD64 against {words}"),
            &library,
            &["r:2a00"],
            Expected::Agreed(&["r 2a00: 0x1"]),
        )?;
    }
    Ok(())
}

/// The ordinary library with eight words of thread-local storage, its image at 0x2c00.
fn library() -> Library {
    let mut library = Library::ordinary(SONAME);
    let local = Symbol { binding: Binding::Local, kind: SymbolType::Tls, ..Symbol::object("local", 8, 8) };
    library.symbols.insert(0, local);
    library.symbol(Symbol { kind: SymbolType::Tls, ..Symbol::object("global", 0x10, 8) });
    library.symbol(Symbol { kind: SymbolType::Tls, ..Symbol::undefined("nowhere", Binding::Weak) });
    for word in 0..8 {
        library.word(0x2c00 + 8 * word, 0x101 * (word + 1));
    }
    library.headers.push(ProgramHeader {
        kind: SegmentKind::TLS,
        flags: Protection::R,
        offset: 0x2c00,
        address: 0x2c00,
        file_size: 64,
        memory_size: 64,
        alignment: 8,
    });
    library
}
