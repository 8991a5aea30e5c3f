//! Tables, string tables and images: nothing outside them can be read.

use proptest::prelude::*;
use rtld_elf::pod::is_same_name;
use rtld_elf::{Image, PF_R, PF_W, PF_X, ProgramHeader, StringTable, Table, gnu_hash};

use goblin::elf64::program_header::{PT_LOAD, PT_NOTE};

use crate::support::bytes_of;

#[test]
fn tables() {
    let bytes = [1u8, 0, 2, 0, 3, 0, 9];
    let table: Table<'_, u16> = Table::from_bytes(&bytes);
    assert_eq!((table.len(), table.get(2), table.get(3), table.get(usize::MAX)), (3, Some(3), None, None));
    assert_eq!(table.iter().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(table.iter().len(), 3);
    let part = table.sub(1, 2).unwrap();
    assert_eq!((part.get(0), part.get(1), part.get(2)), (Some(2), Some(3), None));
    assert!(table.sub(3, 0).is_some_and(|none| none.is_empty()));
    assert!(table.sub(2, 2).is_none() && table.sub(4, 0).is_none() && table.sub(1, usize::MAX).is_none());
    assert_eq!((table.from(1).len(), table.from(3).len(), table.from(usize::MAX).len()), (2, 0, 0));
    // At odd addresses too.
    let words = Table::<u8>::from_bytes(&bytes);
    assert_eq!(
        (words.read::<u16>(1), words.read::<u32>(3), words.read::<u32>(4)),
        (Some(0x200), Some(0x0900_0300), None)
    );
    assert_eq!(words.read::<u64>(usize::MAX), None);
    assert_eq!(words.records::<u32>().len(), 1);
    assert_eq!(Table::<u64>::empty().get(0), None);
}

proptest! {
    /// `equals` says what `get` and a comparison say.
    #[test]
    fn names_are_compared_as_they_are_read(
        text in proptest::collection::vec(0u8..3, 0..60),
        name in proptest::collection::vec(1u8..3, 0..20),
        offset in 0u32..70,
    ) {
        let strings = StringTable::from_bytes(&text);
        prop_assert_eq!(strings.equals(offset, &name), strings.get(offset.into()) == Some(&name[..]));
        let hashed = strings.get(offset.into()).map(|name| (name, gnu_hash(name)));
        prop_assert_eq!(strings.get_hashed(offset), hashed);
    }

    /// Each name of a table equals itself, and nothing that differs in one byte.
    #[test]
    fn a_name_equals_itself_alone(name in proptest::collection::vec(1u8.., 1..40), at in any::<prop::sample::Index>()) {
        let text = [&[0], &name[..], &[0]].concat();
        let strings = StringTable::from_bytes(&text);
        prop_assert!(strings.equals(1, &name));
        prop_assert!(is_same_name(&name, &name.clone()));
        let mut other = name.clone();
        *at.get_mut(&mut other) ^= 0x80;
        prop_assert!(!strings.equals(1, &other));
        prop_assert!(!is_same_name(&name, &other));
        prop_assert!(!is_same_name(&name, &name[..name.len() - 1]));
        prop_assert!(!strings.equals(1, &name[..name.len() - 1]));
    }
}

#[test]
fn names_must_end_inside_the_table() {
    let strings = StringTable::from_bytes(b"\0ab\0cd");
    assert_eq!(strings.get(0), Some(&b""[..]));
    assert_eq!((strings.get(1), strings.get(2)), (Some(&b"ab"[..]), Some(&b"b"[..])));
    assert_eq!((strings.get(4), strings.get(6), strings.get(u64::MAX)), (None, None, None));
    assert!(strings.equals(1, b"ab") && strings.equals(3, b""));
    assert!(!strings.equals(1, b"a") && !strings.equals(4, b"cd") && !strings.equals(u32::MAX, b""));
    assert_eq!((strings.len(), StringTable::empty().get(0)), (6, None));
}

fn load(flags: u32, vaddr: u64, memsz: u64) -> ProgramHeader {
    ProgramHeader { p_type: PT_LOAD, p_flags: flags, p_vaddr: vaddr, p_memsz: memsz, ..ProgramHeader::default() }
}

#[test]
fn an_image_is_its_segments() {
    let headers = bytes_of(&[
        ProgramHeader { p_type: PT_NOTE, p_flags: PF_R, p_memsz: u64::MAX, ..ProgramHeader::default() },
        load(PF_R | PF_X, 0x1000, 0x10),
        load(PF_W, 0x1010, 0x10),
        load(PF_X, 0x1020, 0x10),
        load(0, 0x1030, 0x10),
        load(PF_R, 0x1040, 0x1000),
    ]);
    let buffer: Vec<u8> = (0..0x60).collect();
    let image = Image::laid_out(&buffer, 0x1000, Table::from_bytes(&headers));
    let first = |vaddr: u64, length: u64| image.bytes(vaddr, length).and_then(|bytes| bytes.get(0));
    assert_eq!(first(0x1000, 0x10), Some(0));
    assert_eq!(first(0x100f, 1), Some(0xf));
    // Not across two segments, not before the first one, not around the address space.
    assert_eq!((first(0x1000, 0x11), first(0xfff, 2), first(0x1008, u64::MAX)), (None, None, None));
    assert_eq!(first(u64::MAX, 1), None);
    // What can be written can be read; code without PF_R cannot.
    assert_eq!((first(0x1010, 1), first(0x1020, 1), first(0x1030, 1)), (Some(0x10), None, None));
    // The buffer ends before the segment does.
    assert_eq!((first(0x1040, 0x20), first(0x1040, 0x21)), (Some(0x40), None));
    assert_eq!(image.table_to_end::<u64>(0x1041).map(|table| table.len()), Some(3));
    assert!(image.table_to_end::<u64>(0x1060).is_none());
    assert!(image.table_to_end::<u64>(0x1010).is_some_and(|table| table.len() == 2));
    // No bytes lie anywhere; records whose size overflows nowhere.
    assert!(image.bytes(u64::MAX, 0).is_some_and(|bytes| bytes.is_empty()));
    assert!(image.table::<u64>(0x1000, 1 << 61).is_none());
    assert_eq!(image.read::<u32>(0x1004), Some(0x0706_0504));
    assert!(image.strings(0x1000, 0x10).is_some() && image.strings(0x1000, 0x11).is_none());
    assert_eq!(image.address(0x1004), buffer.as_ptr() as usize + 4);
    // Rights.
    assert!(image.contains(0x1000, 0x10, PF_R | PF_X) && !image.contains(0x1000, 0x11, PF_R));
    assert!(!image.contains(0x1000, 1, PF_W) && image.contains(0x101f, 1, PF_W));
    assert!(!image.contains(0x2040, 1, PF_R) && !image.contains(u64::MAX, 1, 0));
    assert_eq!(image.headers().len(), 6);
}
