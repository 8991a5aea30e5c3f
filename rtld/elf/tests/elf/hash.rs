//! Hash tables: the hashes against the `object` crate's, tables made by hand, damaged ones, and the vDSO's.

use std::fs;

use proptest::prelude::*;
use rtld_elf::tag::*;
use rtld_elf::{Dynamic, Hash, gnu_hash, sysv_hash};

use crate::crafted::{Crafted, HASH, SYMBOLS};
use crate::support::LaidOut;

/// The value that descriptions of the format give for `printf`.
const PRINTF_GNU: u32 = 0x156b_2bb8;

proptest! {
    #[test]
    fn hashes_are_those_of_object(name in proptest::collection::vec(1u8.., 0..40)) {
        prop_assert_eq!(gnu_hash(&name), object::elf::gnu_hash(&name));
        prop_assert_eq!(sysv_hash(&name), object::elf::hash(&name));
    }
}

#[test]
fn hashes_of_known_names() {
    assert_eq!(gnu_hash(b"printf"), PRINTF_GNU);
    assert_eq!(gnu_hash(b""), 5381);
    assert_eq!(sysv_hash(b"printf"), 0x0779_05a6);
    assert_eq!(sysv_hash(b""), 0);
    // Bytes beyond ASCII are unsigned.
    assert_eq!(gnu_hash(b"\xff"), 5381 * 33 + 255);
}

/// Two names in one bucket, symbols 1 and 2 of a table with an undefined symbol before them.
fn gnu(chains: &[u32]) -> Crafted {
    let words = [1, 1, 1, 6, u32::MAX, u32::MAX, 1];
    Crafted::new()
        .strings("\0one\0two\0")
        .symbols(&[(1, 0x10), (5, 0x20)])
        .put(HASH, &words)
        .put(HASH + 28, chains)
        .tag(DT_GNU_HASH, HASH)
}

fn found(dynamic: Dynamic<'_>, hash: u32) -> Vec<u32> {
    match dynamic.hash {
        Hash::None => Vec::new(),
        Hash::Gnu(table) => table.candidates(hash).collect(),
        Hash::Sysv(table) => table.candidates(hash).collect(),
    }
}

#[test]
fn a_chain_ends_at_its_end_bit() {
    let (one, two) = (gnu_hash(b"one"), gnu_hash(b"two"));
    // The third entry belongs to nobody.
    let chains = [one & !1, two | 1, one & !1];
    for name in [one, one ^ 1] {
        assert_eq!(gnu(&chains).accepted(|dynamic| found(dynamic, name)), [1]);
    }
    assert_eq!(gnu(&chains).accepted(|dynamic| found(dynamic, two)), [2]);
    assert_eq!(gnu(&chains).accepted(|dynamic| found(dynamic, gnu_hash(b"three"))), []);
    assert_eq!(gnu(&chains).accepted(|dynamic| dynamic.hash.symbol_count()), 3);
}

#[test]
fn a_chain_without_end_stops_at_the_end_of_the_symbols() {
    // 0x800 bytes from SYMBOLS to HASH are not all: the symbol table is bounded by the segment, 0x1000.
    let symbols = (0x1000 - SYMBOLS) / 24;
    let chains = [2; 0x60];
    let last = gnu(&chains).accepted(|dynamic| found(dynamic, 2).last().copied());
    assert!(last.is_some_and(|last| u64::from(last) < symbols), "{last:?}");
    let count = gnu(&chains).accepted(|dynamic| dynamic.hash.symbol_count());
    assert_eq!(u64::from(count), symbols);
}

#[test]
fn the_bloom_filter_needs_both_bits() {
    let hash: u32 = 0x0000_4321;
    let (first, second) = (hash % 64, (hash >> 6) % 64);
    for (word, expected) in [(0, false), (1 << first, false), (1 << second, false), (1u64 << first | 1 << second, true)]
    {
        let object = gnu(&[1]).put(HASH + 16, &[word]);
        object.accepted(|dynamic| match dynamic.hash {
            Hash::Gnu(table) => assert_eq!(table.maybe(hash), expected, "{word:#x}"),
            _ => panic!("no GNU hash"),
        });
    }
}

#[test]
fn damaged_gnu_tables() {
    gnu(&[1]).put(HASH + 8, &[3u32]).refused("DT_GNU_HASH has a Bloom filter of 3 words, expected a power of two");
    gnu(&[1]).put(HASH + 8, &[0u32]).refused("DT_GNU_HASH has a Bloom filter of 0 words, expected a power of two");
    let outside = format!("hash table at {HASH:#x} is not inside any loaded segment");
    gnu(&[1]).put(HASH + 8, &[1u32 << 31]).refused(&outside);
    gnu(&[1]).put(HASH, &[u32::MAX]).refused(&outside);
    Crafted::new().tag(DT_GNU_HASH, 0xff8).refused("hash table at 0xff8 is not inside any loaded segment");
    // No bucket: no symbols, and no division by zero (mumble#5853).
    assert_eq!(gnu(&[1]).put(HASH, &[0u32]).accepted(|dynamic| found(dynamic, 7)), []);
    // Any shift is one of 32 bits; any first symbol, even below symbol_offset.
    for shift in [0, 31, 32, 63, u32::MAX] {
        gnu(&[1]).put(HASH + 12, &[shift]).accepted(|dynamic| match dynamic.hash {
            Hash::Gnu(table) => assert!(table.maybe(0x1234_5678)),
            _ => panic!("no GNU hash"),
        });
    }
    for (offset, first) in [(0, 0), (1, 0), (1, 99_999), (9, 3), (u32::MAX, 1), (1, u32::MAX), (u32::MAX, u32::MAX)] {
        let object = gnu(&[7]).put(HASH + 4, &[offset]).put(HASH + 24, &[first]);
        assert_eq!(object.accepted(|dynamic| found(dynamic, 7)), [], "{offset} {first}");
    }
    // Without symbols nothing can be found.
    let bare = Crafted::new().put(HASH, &[1, 0, 1, 6, u32::MAX, u32::MAX, 1, 7, 7]).tag(DT_GNU_HASH, HASH);
    assert_eq!(bare.accepted(|dynamic| found(dynamic, 7)), []);
}

/// Three symbols: buckets 0 and 1, chains as given.
fn sysv(chains: [u32; 4]) -> Crafted {
    Crafted::new()
        .symbols(&[(0, 1), (0, 2), (0, 3)])
        .put(HASH, &[2u32, 4, 1, 0])
        .put(HASH + 16, &chains)
        .tag(DT_HASH, HASH)
}

#[test]
fn sysv_chains() {
    assert_eq!(sysv([0, 3, 0, 2]).accepted(|dynamic| found(dynamic, 8)), [1, 3, 2]);
    assert_eq!(sysv([0, 3, 0, 2]).accepted(|dynamic| found(dynamic, 9)), []);
    assert_eq!(sysv([0, 0, 0, 0]).accepted(|dynamic| dynamic.hash.symbol_count()), 4);
    // A table over more symbols than there are: those that are not there are not found.
    let few = sysv([0, 3, 0, 2]).tag(DT_SYMTAB, 0x1000 - 48);
    assert_eq!(few.accepted(|dynamic| found(dynamic, 8)), [1]);
    // A circle ends (moby#23378), a number outside the table too.
    assert!(sysv([0, 2, 1, 0]).accepted(|dynamic| found(dynamic, 8).len()) <= 4);
    assert_eq!(sysv([0, 77, 0, 0]).accepted(|dynamic| found(dynamic, 8)), [1]);
    assert_eq!(sysv([0; 4]).put(HASH, &[0u32]).accepted(|dynamic| found(dynamic, 8)), []);
    let outside = format!("hash table at {HASH:#x} is not inside any loaded segment");
    sysv([0; 4]).put(HASH, &[u32::MAX]).refused(&outside);
    sysv([0; 4]).put(HASH + 4, &[u32::MAX]).refused(&outside);
    sysv([0; 4]).put(HASH, &[u32::MAX; 2]).refused(&outside);
    Crafted::new().tag(DT_HASH, 0xffc).refused("hash table at 0xffc is not inside any loaded segment");
}

#[test]
fn the_gnu_table_is_preferred_unless_it_is_empty() {
    let is_gnu = |dynamic: Dynamic<'_>| matches!(dynamic.hash, Hash::Gnu(_));
    let is_sysv = |dynamic: Dynamic<'_>| matches!(dynamic.hash, Hash::Sysv(_));
    let both = |buckets: u32| sysv([0; 4]).put(HASH + 64, &[buckets, 1, 1, 0, 0, 0, 0]).tag(DT_GNU_HASH, HASH + 64);
    assert!(both(1).accepted(is_gnu));
    assert!(both(0).accepted(is_sysv));
    assert!(sysv([0; 4]).accepted(is_sysv));
}

/// The kernel's own object, of which some processes see variants with one table only (rustix#1254, UTM#6771).
#[test]
fn the_vdso_with_either_table_removed() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).expect("a vDSO");
    let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
    let parse = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (start, end) = (parse(start), parse(end));
    let mut bytes = vec![0; (end - start) as usize];
    use std::os::unix::fs::FileExt;
    fs::File::open("/proc/self/mem").unwrap().read_exact_at(&mut bytes, start).unwrap();

    // What a tag becomes that is taken out: one that nobody reads.
    const NOBODY: u64 = 0x6fff_fd00;
    let mut searched = 0;
    for removed in [None, Some(DT_GNU_HASH), Some(DT_HASH), Some(DT_VERSYM)] {
        let mut bytes = bytes.clone();
        if let Some(tag) = removed {
            let range = LaidOut::new(&bytes, 1 << 20).unwrap().unwrap().layout.dynamic.unwrap();
            let dynamic = &mut bytes[range.start as usize..range.end() as usize];
            let entry = dynamic.chunks_exact_mut(16).find(|entry| entry[..8] == tag.to_le_bytes());
            let Some(entry) = entry else { continue };
            entry[..8].copy_from_slice(&NOBODY.to_le_bytes());
        }
        let laid_out = LaidOut::new(&bytes, 1 << 20).unwrap().unwrap();
        let dynamic = laid_out.dynamic().unwrap().unwrap();
        let name = b"__vdso_clock_gettime";
        let hash = if matches!(dynamic.hash, Hash::Gnu(_)) { gnu_hash(name) } else { sysv_hash(name) };
        let index = found(dynamic, hash)
            .into_iter()
            .find(|&index| dynamic.strings.equals(dynamic.symbols.get(index).unwrap().st_name, name));
        if matches!(dynamic.hash, Hash::None) {
            assert_eq!(index, None);
            continue;
        }
        let index = index.expect("clock_gettime is in the vDSO");
        let version = dynamic.versions.symbol_version(index).and_then(|version| dynamic.versions.name_of(version));
        let expected = (removed != Some(DT_VERSYM)).then_some(&b"LINUX_2.6"[..]);
        assert_eq!(version.map(|version| version.name), expected);
        searched += 1;
    }
    assert!(searched >= 2);
}
