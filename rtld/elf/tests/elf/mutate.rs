//! Damaged copies of real libraries: each is refused or read, and reading all that it offers ends.

use std::cell::Cell;
use std::fs;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use rtld_elf::relocation::relr_addresses;
use rtld_elf::{Dynamic, Hash, PF_X, Range};

use crate::support::{LaidOut, PAGE};

/// Small libraries with every kind of table: both hash styles, versions of both kinds, TLS, RELR or RELA.
const BASES: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/libdl.so.2",
    "/lib/x86_64-linux-gnu/libutil.so.1",
    "/lib/x86_64-linux-gnu/librt.so.1",
];

/// Values that have broken parsers before.
const VALUES: [u64; 14] =
    [0, 1, 2, 7, 8, 0xfff, 0x1000, 0x5858, 1 << 31, u32::MAX as u64, 1 << 47, 1 << 63, u64::MAX - 7, u64::MAX];

/// Reads everything that the dynamic section offers, as the later phases do.
fn read_all(laid_out: &LaidOut, dynamic: &Dynamic<'_>) -> Result<(), TestCaseError> {
    let image = laid_out.image();
    prop_assert!(dynamic.init.is_none_or(|init| image.contains(init, 1, PF_X)));
    let inside = |range: Option<Range>| range.is_none_or(|range| image.bytes(range.start, range.size).is_some());
    prop_assert!(inside(dynamic.init_array) && inside(dynamic.fini_array) && inside(dynamic.preinit_array));
    let needed = dynamic.entries().iter().filter(|entry| entry.d_tag == 1).count();
    prop_assert_eq!(dynamic.needed().count(), needed);
    prop_assert!(dynamic.relative_count <= dynamic.relocations.len());
    for hash in [0, 1, 0x156b_2bb8, u32::MAX] {
        let bound = dynamic.symbols.bound();
        let count = match &dynamic.hash {
            Hash::None => 0,
            Hash::Gnu(table) => {
                let _ = table.maybe(hash);
                prop_assert!(table.candidates(hash).all(|index| (index as usize) < bound));
                table.candidates(hash).count()
            }
            Hash::Sysv(table) => table.candidates(hash).count(),
        };
        prop_assert!(count <= bound);
    }
    let _ = dynamic.hash.symbol_count();
    for index in 0..200 {
        if let Some(symbol) = dynamic.symbols.get(index) {
            let name = dynamic.strings.get(symbol.st_name.into());
            prop_assert!(name.is_none_or(|name| dynamic.strings.equals(symbol.st_name, name)));
        }
        if let Some(version) = dynamic.versions.symbol_version(index) {
            let _ = dynamic.versions.name_of(version);
        }
    }
    let _ = dynamic.versions.highest_index();
    let bits = dynamic.relr.len() * 64;
    prop_assert!(relr_addresses(dynamic.relr).count() <= bits);
    Ok(())
}

#[test]
fn damaged_libraries_are_refused_or_read() {
    let (accepted, refused) = (Cell::new(0), Cell::new(0));
    let bases = BASES.map(|path| fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}")));
    let dynamics = bases.each_ref().map(|base| {
        let laid_out = LaidOut::new(base, 1 << 24).unwrap().unwrap();
        let range = laid_out.layout.dynamic.unwrap();
        // Where the section lies in the file.
        let entry =
            rtld_elf::segments::loads(laid_out.headers()).find(|load| range.start - load.p_vaddr < load.p_memsz);
        let load = entry.unwrap();
        (range.start - load.p_vaddr + load.p_offset) as usize..(range.end() - load.p_vaddr + load.p_offset) as usize
    });
    let change = (
        0usize..3,
        any::<prop::sample::Index>(),
        prop::sample::select(&VALUES[..]),
        prop::sample::select(&[1usize, 2, 4, 8][..]),
    );
    // The same damage in each run, so that a failure can be looked at again.
    let config = Config { cases: 4000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let strategy = (0..BASES.len(), prop::collection::vec(change, 1..4));
    let result = runner.run(&strategy, |(which, changes)| {
        let mut file = bases[which].clone();
        for (region, place, value, width) in changes {
            let region = match region {
                0 => 0..64 + 56 * 12,
                1 => dynamics[which].clone(),
                // The tables before the text.
                _ => 0..file.len().min(2 * PAGE as usize),
            };
            let words = region.len() / width;
            let start = region.start + place.index(words) * width;
            file[start..start + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        // 16 MiB stand for all the memory there is.
        let Ok(Some(laid_out)) = LaidOut::new(&file, 1 << 24) else {
            refused.set(refused.get() + 1);
            return Ok(());
        };
        let layout = laid_out.layout;
        prop_assert!(layout.lowest.is_multiple_of(PAGE) && layout.highest.is_multiple_of(PAGE));
        prop_assert!(layout.relro.is_none_or(|relro| relro.start >= layout.lowest && relro.end() <= layout.highest));
        if let Some(tls) = layout.tls.filter(|tls| tls.filesz != 0) {
            prop_assert!(laid_out.image().contains(tls.vaddr, tls.filesz, 0) && tls.align.is_power_of_two());
        }
        match laid_out.dynamic() {
            Ok(Some(dynamic)) => {
                accepted.set(accepted.get() + 1);
                prop_assert!(laid_out.image().bytes(layout.dynamic.unwrap().start, 16).is_some());
                read_all(&laid_out, &dynamic)?;
            }
            Ok(None) => {}
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                refused.set(refused.get() + 1);
            }
        }
        Ok(())
    });
    result.unwrap();
    println!("{} accepted, {} refused", accepted.get(), refused.get());
    assert!(accepted.get() > 400 && refused.get() > 400, "{} accepted, {} refused", accepted.get(), refused.get());
}

/// A file cut anywhere is refused or has all its bytes: ld-linux dies of SIGBUS for most lengths.
#[test]
fn truncated_libraries_are_refused() {
    let whole = fs::read(BASES[0]).unwrap();
    let laid_out = LaidOut::new(&whole, 1 << 24).unwrap().unwrap();
    let needed =
        rtld_elf::segments::loads(laid_out.headers()).map(|load| load.p_offset + load.p_filesz).max().unwrap() as usize;
    for length in (0..needed).step_by(256).chain([needed - 1]) {
        let refusal = LaidOut::new(&whole[..length], 1 << 24).map(|_| ()).unwrap_err().to_string();
        assert!(refusal == "file too short" || refusal == "cannot read file data", "{length}: {refusal}");
    }
    // Equal is legal: section headers, which lie behind, are not read.
    assert!(LaidOut::new(&whole[..needed], 1 << 24).is_ok());
}
