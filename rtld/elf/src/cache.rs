//! `/etc/ld.so.cache`: which file a soname stands for, as ldconfig(8) wrote it down.
//!
//! Three forms are read: glibc's present one alone, the one of libc5 alone ("ld.so-1.7.0"), and the first behind the
//! second in one file. The cache only saves a search: damage is never an error. A damaged head gives no cache, a damaged
//! entry is passed over, and whatever is found still has to be opened and checked. Lookup is that of glibc 2.36.

use core::cmp::Ordering;

use crate::{StringTable, Table};

const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const NEW_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Size of the old head: the magic, padded to 12 bytes, and the number of entries.
const OLD_HEAD: usize = 16;
/// Size of the new head: magic (20), number of entries, size of the strings, flags (1 + 3), offset of the extensions, 12
/// bytes of nothing.
const NEW_HEAD: usize = 48;
/// The first word of the extension directory.
const EXTENSION_MAGIC: u32 = 0xeaa4_2174;
/// The extension that lists the names of glibc-hwcaps subdirectories, as offsets of strings.
const EXTENSION_HWCAPS: u32 = 1;
/// Flags of an entry: an ELF library of glibc 2 for x86-64.
const FLAGS_X86_64_LIBC6: u32 = 0x0303;
/// Bits of an entry's hwcap, upper half: the ISA level the file needs (not looked at here), and "this is a glibc-hwcaps
/// entry, the lower half says which".
const HWCAP_ISA_LEVELS: u32 = (1 << 10) - 1;
const HWCAP_EXTENSION: u32 = 1 << 30;

/// An entry of the old form: flags, offsets of soname and path.
type OldEntry = [u32; 3];
/// An entry of the new form: flags, offsets of soname and path, kernel version (unused), hwcap (low, high).
type NewEntry = [u32; 6];

/// A cache file.
#[derive(Debug, Clone, Copy)]
pub struct Cache<'a> {
    entries: Entries<'a>,
    strings: StringTable<'a>,
    /// Offsets of the names of glibc-hwcaps subdirectories.
    hwcaps: Table<'a, u32>,
}

#[derive(Debug, Clone, Copy)]
enum Entries<'a> {
    Old(Table<'a, OldEntry>),
    New(Table<'a, NewEntry>),
}

/// One entry, in either form.
struct Entry {
    flags: u32,
    soname: u32,
    path: u32,
    hwcap: [u32; 2],
}

impl<'a> Cache<'a> {
    /// Reads the head of a cache file; `None` if it is none, is damaged, or is of another byte order.
    pub fn parse(file: &'a [u8]) -> Option<Cache<'a>> {
        if file.starts_with(NEW_MAGIC) {
            return Self::parse_new(file, file);
        }
        if !file.starts_with(OLD_MAGIC) {
            return None;
        }
        let bytes = Table::<u8>::from_bytes(file);
        let count = bytes.read::<u32>(12)? as usize;
        let entries = bytes.from(OLD_HEAD).records::<OldEntry>().sub(0, count)?;
        let end = OLD_HEAD + count * size_of::<OldEntry>();
        // The new form follows at the next multiple of 8.
        if let Some(rest) = file.get(end.next_multiple_of(8)..)
            && rest.starts_with(NEW_MAGIC)
        {
            return Self::parse_new(rest, file);
        }
        let strings = StringTable::from_bytes(file.get(end..)?);
        Some(Cache { entries: Entries::Old(entries), strings, hwcaps: Table::empty() })
    }

    /// `cache` starts with the new head; `file` is the whole file, which extensions are counted from.
    fn parse_new(cache: &'a [u8], file: &'a [u8]) -> Option<Cache<'a>> {
        let bytes = Table::<u8>::from_bytes(cache);
        let count = bytes.read::<u32>(20)? as usize;
        // 0 was written before the flag existed; 2 is little-endian.
        if !matches!(bytes.read::<u8>(28)? & 3, 0 | 2) {
            return None;
        }
        let extensions = bytes.read::<u32>(32)? as usize;
        let entries = bytes.sub(NEW_HEAD, bytes.len().checked_sub(NEW_HEAD)?)?.records::<NewEntry>().sub(0, count)?;
        Some(Cache {
            entries: Entries::New(entries),
            strings: StringTable::from_bytes(cache),
            hwcaps: hwcaps(Table::from_bytes(file), extensions).unwrap_or_default(),
        })
    }

    /// Number of entries.
    pub const fn len(&self) -> usize {
        match &self.entries {
            Entries::Old(entries) => entries.len(),
            Entries::New(entries) => entries.len(),
        }
    }

    /// Whether there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn entry(&self, index: usize) -> Option<Entry> {
        Some(match &self.entries {
            Entries::Old(entries) => {
                let [flags, soname, path] = entries.get(index)?;
                Entry { flags, soname, path, hwcap: [0; 2] }
            }
            Entries::New(entries) => {
                let [flags, soname, path, _, low, high] = entries.get(index)?;
                Entry { flags, soname, path, hwcap: [low, high] }
            }
        })
    }

    /// How `name` compares with the soname of an entry; an entry without one is passed over towards the front.
    fn compare_at(&self, index: usize, name: &[u8]) -> Ordering {
        let soname = self.entry(index).and_then(|entry| self.strings.get(entry.soname.into()));
        soname.map_or(Ordering::Less, |soname| compare(name, soname))
    }

    /// The path for a soname.
    ///
    /// `hwcap_priority` says whether the glibc-hwcaps subdirectory of this name ("x86-64-v3") may be used, and how much
    /// it is wanted: the lowest number wins, and each wins over the file outside such directories.
    pub fn lookup(&self, name: &[u8], hwcap_priority: impl Fn(&[u8]) -> Option<u32>) -> Option<&'a [u8]> {
        // ldconfig sorts downwards.
        let (mut first, mut end) = (0, self.len());
        while first < end {
            let middle = first + (end - first) / 2;
            if self.compare_at(middle, name) == Ordering::Less { first = middle + 1 } else { end = middle }
        }
        let mut best: Option<(Option<u32>, &'a [u8])> = None;
        for index in first..self.len() {
            if self.compare_at(index, name) != Ordering::Equal {
                break;
            }
            let Some((priority, path)) = self.entry(index).and_then(|entry| self.usable(&entry, &hwcap_priority))
            else {
                continue;
            };
            let is_better = match (best, priority) {
                (None, _) | (Some((None, _)), Some(_)) => true,
                (Some(_), None) => false,
                (Some((Some(held), _)), Some(priority)) => priority < held,
            };
            if is_better {
                best = Some((priority, path));
            }
        }
        best.map(|(_, path)| path)
    }

    /// The path of an entry that may be used here, and the priority of its glibc-hwcaps subdirectory if it is in one.
    fn usable(&self, entry: &Entry, hwcap_priority: impl Fn(&[u8]) -> Option<u32>) -> Option<(Option<u32>, &'a [u8])> {
        if entry.flags != FLAGS_X86_64_LIBC6 {
            return None;
        }
        let path = self.strings.get(entry.path.into())?;
        let [low, high] = entry.hwcap;
        if high & !HWCAP_ISA_LEVELS == HWCAP_EXTENSION {
            let name = self.strings_of_hwcap(low)?;
            return Some((Some(hwcap_priority(name)?), path));
        }
        // Hardware directories of the old kind ("haswell", "tls") are searched by no loader any more.
        (low == 0 && high == 0).then_some((None, path))
    }

    fn strings_of_hwcap(&self, index: u32) -> Option<&'a [u8]> {
        self.strings.get(self.hwcaps.get(index as usize)?.into())
    }

    /// Soname and path of all entries that are for x86-64, in the order of the file, damaged ones left out. For tools.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let cache = *self;
        (0..self.len()).filter_map(move |index| {
            let entry = cache.entry(index).filter(|entry| entry.flags == FLAGS_X86_64_LIBC6)?;
            Some((cache.strings.get(entry.soname.into())?, cache.strings.get(entry.path.into())?))
        })
    }
}

/// The list of glibc-hwcaps names in the extension directory at `offset`; 0 stands for none.
fn hwcaps<'a>(file: Table<'a, u8>, offset: usize) -> Option<Table<'a, u32>> {
    if offset == 0 || !offset.is_multiple_of(4) {
        return None;
    }
    let [magic, count]: [u32; 2] = file.read(offset)?;
    if magic != EXTENSION_MAGIC {
        return None;
    }
    let sections = file.from(offset.checked_add(8)?).records::<[u32; 4]>().sub(0, count as usize)?;
    let [_, _, start, size] = sections.iter().find(|[tag, ..]| *tag == EXTENSION_HWCAPS)?;
    Some(file.sub(start as usize, size as usize)?.records())
}

/// The order of sonames in the cache: as bytes, but a run of digits counts as a number (libx.so.9 before libx.so.10).
///
/// Numbers wrap at 2^32 as glibc's do, bytes are signed as there, and numbers that differ in leading zeros are equal: the
/// file is sorted by just this order.
pub fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let (mut left, mut right) = (left, right);
    loop {
        match (left.split_first(), right.split_first()) {
            (None, None) => return Ordering::Equal,
            (Some((a, _)), Some((b, _))) if a.is_ascii_digit() && b.is_ascii_digit() => {
                let (a, b) = (number(&mut left), number(&mut right));
                // As in C: the sign of the difference of two int.
                match a.wrapping_sub(b).cmp(&0) {
                    Ordering::Equal => {}
                    order => return order,
                }
            }
            (Some((a, _)), _) if a.is_ascii_digit() => return Ordering::Greater,
            (_, Some((b, _))) if b.is_ascii_digit() => return Ordering::Less,
            (Some((a, left_rest)), Some((b, right_rest))) => {
                if a != b {
                    return (*a as i8).cmp(&(*b as i8));
                }
                (left, right) = (left_rest, right_rest);
            }
            // The end counts as a byte 0, and bytes are signed.
            (Some((a, _)), None) => return (*a as i8).cmp(&0),
            (None, Some((b, _))) => return 0.cmp(&(*b as i8)),
        }
    }
}

/// Takes the digits at the start of `text` for a number.
fn number(text: &mut &[u8]) -> i32 {
    let mut value: i32 = 0;
    while let Some((digit, rest)) = text.split_first().filter(|(digit, _)| digit.is_ascii_digit()) {
        value = value.wrapping_mul(10).wrapping_add(i32::from(digit - b'0'));
        *text = rest;
    }
    value
}
