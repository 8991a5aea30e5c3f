//! Symbol versions: tables made by hand, and each way to damage them.

use rtld_elf::Dynamic;
use rtld_elf::tag::*;
use rtld_elf::version::{VER_FLG_BASE, VER_FLG_WEAK};

use crate::crafted::{Crafted, TABLES, VERSIONS};

/// Where the tables of a versioned object lie.
const DEFINITIONS: u64 = TABLES;
const NEEDS: u64 = TABLES + 0x100;

const TEXT: &str = "\0lib.so\0V1\0V2\0libc.so.6\0GLIBC_2.34\0";
const LIB: u32 = 1;
const V1: u32 = 8;
const V2: u32 = 11;
const LIBC: u32 = 14;
const GLIBC: u32 = 24;

/// Two 16-bit fields of a record.
const fn pair(low: u16, high: u16) -> u32 {
    low as u32 | (high as u32) << 16
}

/// Defines itself (index 1), V1 (2) and V2 (3); needs GLIBC_2.34 (4) and, weakly, V1 (5) of libc.so.6.
fn versioned() -> Crafted {
    let definition =
        |flags: u16, index: u16, name: u32, next: u32| [pair(1, flags), pair(index, 1), name * 1000, 20, next, name, 0];
    let definitions =
        [definition(VER_FLG_BASE, 1, LIB, 28), definition(0, 2, V1, 28), definition(0, 3, V2, 0)].concat();
    let needs = [
        [pair(1, 2), LIBC, 16, 0].as_slice(),
        &[GLIBC * 1000, pair(0, 4), GLIBC, 16],
        &[V1 * 1000, pair(VER_FLG_WEAK, 0x8005), V1, 0],
    ]
    .concat();
    Crafted::new()
        .strings(TEXT)
        .put(VERSIONS, &[0u16, 1, 2, 0x8003, 4, 5, 6])
        .put(DEFINITIONS, &definitions)
        .put(NEEDS, &needs)
        .tag(DT_VERSYM, VERSIONS)
        .tag(DT_VERDEF, DEFINITIONS)
        .tag(DT_VERDEFNUM, 3)
        .tag(DT_VERNEED, NEEDS)
        .tag(DT_VERNEEDNUM, 1)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn what_a_symbol_has_for_a_version() {
    versioned().accepted(|dynamic| {
        let versions = dynamic.versions;
        let name = |symbol: u32| {
            let version = versions.name_of(versions.symbol_version(symbol)?)?;
            Some((text(version.name), version.hash, version.file.map(text), version.hidden))
        };
        assert_eq!(name(0), None);
        assert_eq!(name(1), None);
        assert_eq!(name(2), Some(("V1", 8000, None, false)));
        assert_eq!(name(3), Some(("V2", 11000, None, true)));
        assert_eq!(name(4), Some(("GLIBC_2.34", 24000, Some("libc.so.6"), false)));
        assert_eq!(name(5), Some(("V1", 8000, Some("libc.so.6"), false)));
        assert_eq!(name(6), None);
        // Bounded by the segment, not by the number of symbols.
        assert_eq!(versions.symbol_version((0x1000 - VERSIONS as u32) / 2), None);
        assert_eq!(versions.highest_index(), 5);
    });
}

/// The first two indexes mean no version, and the object's own name is none, whatever the definitions say.
#[test]
fn indexes_without_a_name() {
    let name = |object: Crafted, index: u16| {
        object.accepted(|dynamic| dynamic.versions.name_of(index).map(|version| text(version.name).to_owned()))
    };
    let (flags, index) = (DEFINITIONS + 28 + 2, DEFINITIONS + 28 + 4);
    assert_eq!(name(versioned(), 2).as_deref(), Some("V1"));
    for reserved in [0u16, 1] {
        assert_eq!(name(versioned().put(index, &[reserved]), reserved), None);
    }
    assert_eq!(name(versioned().put(flags, &[VER_FLG_BASE]), 2), None);
}

#[test]
fn lists_of_versions() {
    versioned().accepted(|dynamic| {
        let definitions: Vec<_> = dynamic
            .versions
            .definitions()
            .map(|version| (text(version.name), version.index, version.is_base()))
            .collect();
        assert_eq!(definitions, [("lib.so", 1, true), ("V1", 2, false), ("V2", 3, false)]);
        let needs: Vec<_> = dynamic.versions.needs().collect();
        assert_eq!(needs.len(), 1);
        assert_eq!(text(needs[0].file), "libc.so.6");
        let versions: Vec<_> =
            needs[0].versions().map(|version| (text(version.name), version.index, version.is_weak())).collect();
        assert_eq!(versions, [("GLIBC_2.34", 4, false), ("V1", 0x8005, true)]);
        assert!(dynamic.versions.has_definitions() && !dynamic.versions.is_empty());
    });
}

#[test]
fn damaged_definitions_are_refused() {
    let record = |index: u64| DEFINITIONS + index * 28;
    versioned().put(record(1), &[2u16]).refused("unsupported version 2 of DT_VERDEF record");
    let damaged = "DT_VERDEF is damaged";
    // No name; a name outside; the list ends too early, bites its tail, or leads outside.
    versioned().put(record(0) + 6, &[0u16]).refused(damaged);
    versioned().put(record(0) + 12, &[u32::MAX]).refused(damaged);
    for next in [0u32, 4, 19, 0x1000, u32::MAX] {
        versioned().put(record(1) + 16, &[next]).refused(damaged);
    }
    versioned().put(record(2) + 20, &[500u32]).refused("DT_VERDEF name 0x1f4 is not inside the string table");
    versioned().tag(DT_VERDEFNUM, 4).refused(damaged);
    versioned().tag(DT_VERDEFNUM, u64::MAX).refused(damaged);
    // What lies behind the last record is nobody's.
    versioned()
        .put(record(2) + 16, &[u32::MAX])
        .accepted(|dynamic| assert_eq!(dynamic.versions.definitions().count(), 3));
}

#[test]
fn damaged_needs_are_refused() {
    let damaged = "DT_VERNEED is damaged";
    versioned().put(NEEDS, &[0u16]).refused("unsupported version 0 of DT_VERNEED record");
    versioned().put(NEEDS + 2, &[3u16]).refused(damaged);
    versioned().put(NEEDS + 2, &[u16::MAX]).refused(damaged);
    versioned().put(NEEDS + 4, &[0x777u32]).refused("DT_VERNEED name 0x777 is not inside the string table");
    versioned().put(NEEDS + 8, &[u32::MAX - 7]).refused(damaged);
    versioned().put(NEEDS + 16 + 8, &[0x777u32]).refused("DT_VERNEED name 0x777 is not inside the string table");
    for next in [0u32, 15, 0x1000, u32::MAX] {
        versioned().put(NEEDS + 16 + 12, &[next]).refused(damaged);
    }
    versioned().tag(DT_VERNEEDNUM, 2).refused(damaged);
    versioned().tag(DT_VERNEEDNUM, u64::MAX).refused(damaged);
}

/// Each file's list may be long, and they may all be the same one: the work must not grow with the square.
#[test]
fn needs_that_share_their_versions_are_refused() {
    let files = 100u32;
    let shared = files * 16;
    let record = |index: u32| [pair(1, 30), LIBC, shared - index * 16, 16];
    let records: Vec<u32> = (0..files).flat_map(record).collect();
    let version = [GLIBC * 1000, pair(0, 4), GLIBC, 16];
    let versions: Vec<u32> = version.repeat(30);
    let object = |count: u64| {
        Crafted::new()
            .strings(TEXT)
            .put(TABLES, &records)
            .put(TABLES + u64::from(shared), &versions)
            .tag(DT_VERNEED, TABLES)
            .tag(DT_VERNEEDNUM, count)
    };
    object(100).refused("DT_VERNEED is damaged");
    object(3).accepted(|dynamic| assert_eq!(dynamic.versions.needs().count(), 3));
}

#[test]
fn without_versions_nothing_has_one() {
    let none = |dynamic: Dynamic<'_>| {
        (dynamic.versions.symbol_version(0), dynamic.versions.name_of(2).is_some(), dynamic.versions.highest_index())
    };
    assert_eq!(Crafted::new().accepted(none), (None, false, 1));
    // A count of nothing, wherever it points.
    assert_eq!(Crafted::new().tag(DT_VERDEF, u64::MAX).tag(DT_VERNEED, u64::MAX).accepted(none), (None, false, 1));
}
