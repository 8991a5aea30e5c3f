//! The dynamic section: what each tag turns into, and in which words a hostile value is refused.

use rtld_elf::dynamic::{Flags, Flags1};
use rtld_elf::tag::*;
use rtld_elf::{Dynamic, DynamicError, Hash, Range};

use crate::crafted::{Crafted, DYNAMIC, END, STRINGS, SYMBOLS, TABLES, TEXT};

#[test]
fn an_object_that_says_nothing_is_legal() {
    Crafted::new().accepted(|dynamic| {
        assert!(dynamic.strings.is_empty() && dynamic.symbols.is_empty() && dynamic.versions.is_empty());
        assert!(matches!(dynamic.hash, Hash::None));
        assert!(dynamic.relocations.is_empty() && dynamic.plt_relocations.is_empty() && dynamic.relr.is_empty());
        assert_eq!((dynamic.init, dynamic.fini, dynamic.plt_got, dynamic.debug_slot), (None, None, None, None));
        assert_eq!((dynamic.soname, dynamic.rpath, dynamic.runpath), (None, None, None));
        assert_eq!(dynamic.needed().count(), 0);
    });
}

#[test]
fn names_come_in_order() {
    let object = Crafted::new()
        .tag(DT_NEEDED, 6)
        .tag(DT_NEEDED, 1)
        .tag(DT_SONAME, 10)
        .tag(DT_RPATH, 13)
        .tag(DT_NEEDED, 6)
        .tag(DT_FILTER, 1)
        .tag(DT_AUXILIARY, 6)
        .strings("\0libb\0liba\0/opt\0");
    object.accepted(|dynamic| {
        assert_eq!(dynamic.needed().collect::<Vec<_>>(), [b"liba", b"libb", b"liba"]);
        assert_eq!(dynamic.filters().collect::<Vec<_>>(), [b"libb"]);
        assert_eq!(dynamic.auxiliaries().collect::<Vec<_>>(), [b"liba"]);
        assert_eq!(dynamic.soname, Some(&b""[..]));
        assert_eq!((dynamic.rpath, dynamic.runpath), (Some(&b"pt"[..]), None));
    });
}

#[test]
fn runpath_makes_rpath_void() {
    Crafted::new().tag(DT_RPATH, 1).tag(DT_RUNPATH, 3).strings("\0a\0b\0").accepted(|dynamic| {
        assert_eq!((dynamic.rpath, dynamic.runpath), (None, Some(&b"b"[..])));
    });
}

#[test]
fn names_outside_the_string_table_are_refused() {
    for tag in [DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_FILTER, DT_AUXILIARY] {
        // The last name has no end; memory behind the table (zero) does not count.
        for offset in [3, 5, 6, 0x1_0000_0001, u64::MAX] {
            let text = format!("{} name {offset:#x} is not inside the string table", name(tag));
            Crafted::new().tag(tag, offset).strings("\0a\0bc").refused(&text);
        }
        Crafted::new().tag(tag, 0).refused(&format!("{} name 0x0 is not inside the string table", name(tag)));
    }
}

#[test]
fn the_section_must_end_inside_its_segment() {
    let mut object = Crafted::new().tag(DT_DEBUG, 0).tag(DT_TEXTREL, 0);
    let range = object.finish();
    let digest = |range: Range| Dynamic::digest(&object.image(), range).map(|_| ());
    assert_eq!(digest(range), Ok(()));
    let cut = Range { size: range.size - 1, ..range };
    assert_eq!(digest(cut), Err(DynamicError::NotTerminated));
    assert_eq!(DynamicError::NotTerminated.to_string(), "dynamic section is not terminated");
    assert_eq!(digest(Range { size: 0, ..range }), Err(DynamicError::NotTerminated));
    let outside = Range { start: END - 8, size: 16 };
    assert_eq!(digest(outside), Err(DynamicError::Unreadable));
    assert_eq!(DynamicError::Unreadable.to_string(), "dynamic section is not inside any loaded segment");
}

/// Half of the section overwritten with 'X' (ndk#1866): named by tag and value.
#[test]
fn pointers_outside_the_object_are_named() {
    let value = 0x5858_5858_5858_5858;
    for tag in [DT_SYMTAB, DT_VERSYM] {
        Crafted::new().tag(tag, value).refused(&format!("{} {value:#x} is not inside any loaded segment", name(tag)));
    }
    let sized = [
        (DT_STRTAB, DT_STRSZ),
        (DT_RELA, DT_RELASZ),
        (DT_JMPREL, DT_PLTRELSZ),
        (DT_RELR, DT_RELRSZ),
        (DT_INIT_ARRAY, DT_INIT_ARRAYSZ),
        (DT_FINI_ARRAY, DT_FINI_ARRAYSZ),
        (DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ),
        (DT_VERDEF, DT_VERDEFNUM),
        (DT_VERNEED, DT_VERNEEDNUM),
    ];
    for (tag, size_tag) in sized {
        let text = |value: u64| format!("{} {value:#x} is not inside any loaded segment", name(tag));
        Crafted::new().tag(tag, value).tag(size_tag, 24).refused(&text(value));
        if !matches!(tag, DT_VERDEF | DT_VERNEED) {
            // From one segment into the other, and around the address space.
            Crafted::new().tag(tag, 0xff8).tag(size_tag, 24).refused(&text(0xff8));
            Crafted::new().tag(size_tag, u64::MAX / 24 * 24).tag(tag, 0).refused(&text(0));
            Crafted::new().tag(tag, END - 24).tag(size_tag, 24).digest(|result| assert!(result.is_ok()));
        }
    }
    for tag in [DT_HASH, DT_GNU_HASH] {
        Crafted::new().tag(tag, value).refused("hash table at 0x5858585858585858 is not inside any loaded segment");
    }
}

#[test]
fn sizes_are_checked() {
    let entries = [(DT_RELAENT, 24), (DT_SYMENT, 24), (DT_RELRENT, 8)];
    for (tag, expected) in entries {
        Crafted::new().tag(tag, 9).refused(&format!("{} is 9, expected {expected}", name(tag)));
        Crafted::new().tag(tag, expected).accepted(|_| ());
    }
    let tables = [(DT_RELA, DT_RELASZ, 24), (DT_JMPREL, DT_PLTRELSZ, 24), (DT_RELR, DT_RELRSZ, 8)];
    for (tag, size_tag, entry) in tables {
        let text = format!("{} is 25, not a multiple of {entry}", name(size_tag));
        Crafted::new().tag(tag, TABLES).tag(size_tag, 25).refused(&text);
        Crafted::new().tag(size_tag, 48).refused(&format!("{} without {}", name(size_tag), name(tag)));
        Crafted::new().tag(tag, u64::MAX).accepted(|_| ());
    }
    Crafted::new().tag(DT_STRTAB, STRINGS).refused("DT_STRTAB without DT_STRSZ");
}

#[test]
fn relocations_of_other_kinds_are_refused() {
    Crafted::new().tag(DT_REL, TABLES).tag(DT_RELSZ, 16).refused("DT_REL relocations are not used on x86-64");
    Crafted::new().tag(DT_RELSZ, 0).accepted(|_| ());
    Crafted::new().tag(DT_PLTREL, 17).refused("unexpected PLT reloc type 0x11");
    Crafted::new().tag(DT_PLTREL, DT_RELA).accepted(|_| ());
}

#[test]
fn plt_relocations_are_not_applied_twice() {
    let object = |plt: u64, plt_size: u64| {
        Crafted::new()
            .tag(DT_RELA, TABLES)
            .tag(DT_RELASZ, 96)
            .tag(DT_RELACOUNT, 3)
            .tag(DT_JMPREL, plt)
            .tag(DT_PLTRELSZ, plt_size)
            .tag(DT_PLTGOT, DYNAMIC)
    };
    let counts =
        |dynamic: Dynamic<'_>| (dynamic.relocations.len(), dynamic.relative_count, dynamic.plt_relocations.len());
    // At the end of the others: counted once.
    assert_eq!(object(TABLES + 48, 48).accepted(counts), (2, 2, 2));
    assert_eq!(object(TABLES + 96, 48).accepted(counts), (4, 3, 2));
    assert_eq!(object(TABLES, 96).accepted(counts), (0, 0, 4));
}

#[test]
fn more_relative_relocations_than_there_are_count_as_all() {
    let object = Crafted::new().tag(DT_RELA, TABLES).tag(DT_RELASZ, 48).tag(DT_RELACOUNT, u64::MAX);
    assert_eq!(object.accepted(|dynamic| dynamic.relative_count), 2);
}

#[test]
fn the_got_of_the_plt_must_be_writable_if_it_is_used() {
    let object = |value: u64| Crafted::new().tag(DT_JMPREL, TABLES).tag(DT_PLTRELSZ, 24).tag(DT_PLTGOT, value);
    assert_eq!(object(END - 24).accepted(|dynamic| dynamic.plt_got), Some(END - 24));
    object(END - 23).refused("DT_PLTGOT 0x2fe9 is not inside a writable segment");
    object(STRINGS).refused("DT_PLTGOT 0x100 is not inside a writable segment");
    // Without lazy slots nobody writes there.
    assert_eq!(Crafted::new().tag(DT_PLTGOT, STRINGS).accepted(|dynamic| dynamic.plt_got), None);
}

#[test]
fn initialisers_must_be_executable() {
    for tag in [DT_INIT, DT_FINI] {
        for value in [DYNAMIC, 0x5858, END, u64::MAX] {
            let text = format!("{} {value:#x} is not inside an executable segment", name(tag));
            Crafted::new().tag(tag, value).refused(&text);
        }
        Crafted::new().tag(tag, 0).accepted(|dynamic| assert_eq!((dynamic.init, dynamic.fini), (None, None)));
    }
    let object = Crafted::new().tag(DT_INIT, TEXT).tag(DT_FINI, 0xfff);
    object.accepted(|dynamic| assert_eq!((dynamic.init, dynamic.fini), (Some(TEXT), Some(0xfff))));
}

#[test]
fn arrays_say_where_they_lie() {
    let arrays = |dynamic: Dynamic<'_>| (dynamic.preinit_array, dynamic.init_array, dynamic.fini_array);
    let object = Crafted::new()
        .tag(DT_PREINIT_ARRAY, TABLES)
        .tag(DT_PREINIT_ARRAYSZ, 8)
        .tag(DT_INIT_ARRAY, TABLES + 8)
        .tag(DT_INIT_ARRAYSZ, 16)
        .tag(DT_FINI_ARRAY, TABLES + 24)
        .tag(DT_FINI_ARRAYSZ, 24);
    let range = |start: u64, size: u64| Some(Range { start, size });
    assert_eq!(object.accepted(arrays), (range(0x2000, 8), range(0x2008, 16), range(0x2018, 24)));
    let empty = Crafted::new().tag(DT_INIT_ARRAY, u64::MAX).tag(DT_INIT_ARRAYSZ, 0);
    assert_eq!(empty.accepted(arrays), (None, None, None));
    Crafted::new()
        .tag(DT_INIT_ARRAY, TABLES)
        .tag(DT_INIT_ARRAYSZ, 12)
        .refused("DT_INIT_ARRAYSZ is 12, not a multiple of 8");
}

#[test]
fn flags_are_folded() {
    Crafted::new().tag(DT_SYMBOLIC, 0).tag(DT_FLAGS, 0x4000_0010).tag(DT_FLAGS_1, 0x8000_0801).accepted(|dynamic| {
        assert!(dynamic.flags.contains(Flags::SYMBOLIC | Flags::STATIC_TLS));
        assert!(dynamic.flags_1.contains(Flags1::NOW | Flags1::NODEFLIB));
        assert_eq!((dynamic.flags.bits(), dynamic.flags_1.bits()), (0x4000_0012, 0x8000_0801));
        assert!(dynamic.binds_now() && !dynamic.has_textrel());
    });
    assert!(Crafted::new().tag(DT_TEXTREL, 0).accepted(|dynamic| dynamic.has_textrel()));
    assert!(Crafted::new().tag(DT_BIND_NOW, 0).accepted(|dynamic| dynamic.binds_now()));
    assert!(Crafted::new().tag(DT_FLAGS, 8).accepted(|dynamic| dynamic.binds_now()));
    assert!(!Crafted::new().accepted(|dynamic| dynamic.binds_now()));
}

#[test]
fn the_debug_slot_is_the_value_of_its_entry() {
    let object = Crafted::new().tag(DT_TEXTREL, 0).tag(DT_DEBUG, 0);
    assert_eq!(object.accepted(|dynamic| dynamic.debug_slot), Some(DYNAMIC + 16 + 8));
}

#[test]
fn the_last_of_two_entries_counts_and_unknown_ones_are_passed_over() {
    let object = Crafted::new().tag(DT_SYMTAB, SYMBOLS).tag(0x7000_1234, u64::MAX).tag(DT_SYMTAB, END - 48);
    object.accepted(|dynamic| {
        assert_eq!(dynamic.symbols.bound(), 2);
        assert_eq!(dynamic.entry_value(DT_SYMTAB), Some(END - 48));
        assert_eq!(dynamic.entry_value(0x7000_1234), Some(u64::MAX));
        assert_eq!(dynamic.entry_value(DT_HASH), None);
        assert_eq!(dynamic.entries().len(), 3);
    });
}
