//! Relocation records and the packed relative form.

use proptest::prelude::*;
use rtld_elf::relocation::{self, Name, relr_addresses};
use rtld_elf::{Rela, Table};

use crate::support::bytes_of;

fn decode(entries: &[u64]) -> Vec<u64> {
    relr_addresses(Table::from_bytes(&bytes_of(entries))).collect()
}

/// The definition, bit by bit.
fn decode_naively(entries: &[u64]) -> Vec<u64> {
    let (mut found, mut place) = (Vec::new(), 0u64);
    for &entry in entries {
        if entry % 2 == 0 {
            found.push(entry);
            place = entry.wrapping_add(8);
        } else {
            for bit in 1..64 {
                if entry >> bit & 1 == 1 {
                    found.push(place.wrapping_add((bit - 1) * 8));
                }
            }
            place = place.wrapping_add(63 * 8);
        }
    }
    found
}

/// As linkers pack: an address, then bitmaps as long as they hold anything.
fn encode(addresses: &[u64]) -> Vec<u64> {
    let (mut entries, mut rest) = (Vec::new(), addresses);
    while let Some((&first, tail)) = rest.split_first() {
        entries.push(first);
        rest = tail;
        let mut base = first + 8;
        loop {
            let mut bitmap = 0;
            while let Some((&next, tail)) = rest.split_first() {
                if next < base || (next - base) / 8 >= 63 || (next - base) % 8 != 0 {
                    break;
                }
                bitmap |= 1 << ((next - base) / 8);
                rest = tail;
            }
            if bitmap == 0 {
                break;
            }
            entries.push(bitmap << 1 | 1);
            base += 63 * 8;
        }
    }
    entries
}

proptest! {
    #[test]
    fn any_table_is_decoded_by_the_definition(entries in proptest::collection::vec(any::<u64>(), 0..20)) {
        prop_assert_eq!(decode(&entries), decode_naively(&entries));
    }

    #[test]
    fn what_was_packed_is_unpacked(steps in proptest::collection::vec(1u64..200, 1..200), start in 0u64..1 << 40) {
        let mut place = start * 2;
        let mut addresses = Vec::new();
        for step in steps {
            // Mostly near one another, now and then far away.
            place += if step > 180 { step * 0x1000 } else { step % 9 * 8 + 8 };
            addresses.push(place);
        }
        prop_assert_eq!(decode(&encode(&addresses)), addresses);
    }
}

#[test]
fn a_table_by_hand() {
    assert_eq!(decode(&[0x1000, 0b1011, 0x8000_0000_0000_0001]), [0x1000, 0x1008, 0x1018, 0x1008 + 63 * 8 + 62 * 8]);
    assert_eq!(decode(&[]), []);
    assert_eq!(decode(&[1, 1, 1]), []);
    assert_eq!(decode(&[u64::MAX]).len(), 63);
}

#[test]
fn fields_and_names() {
    let rela = Rela { r_offset: 0, r_info: 0x1234_5678_0000_0025, r_addend: -1 };
    assert_eq!((relocation::kind(&rela), relocation::symbol(&rela)), (37, 0x1234_5678));
    assert_eq!(Name(37).to_string(), "R_X86_64_IRELATIVE");
    assert_eq!(Name(7).to_string(), "R_X86_64_JUMP_SLOT");
    // Only static linkers see this one.
    assert_eq!(Name(9).to_string(), "0x9");
}
