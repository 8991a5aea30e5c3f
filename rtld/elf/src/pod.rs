//! Plain records read by value out of memory: the one file of this crate that may hold `unsafe`.
//!
//! It owns the types that carry a pointer: [`Table`] (records), [`StringTable`] (names) and [`Image`] (the segments of one
//! object). It knows where an object's bytes lie and nothing about what they mean. A record is always read by value through
//! a raw pointer, never borrowed: relocation may change loaded memory between two reads of the same place.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::mem::size_of;
use core::ptr::NonNull;

use goblin::elf64::program_header::{PF_R, PF_W, PT_LOAD};

use crate::hash::{GNU_HASH_START, first_zero_byte, gnu_hash_part, gnu_hash_step, gnu_hash_word};
use crate::version::record::{DefinitionName, DefinitionRecord, NeedRecord, NeedVersionRecord};
use crate::{Dyn, Header, ProgramHeader, Rela, Sym};

/// A record for which every pattern of bits is a value and that has no padding.
///
/// # Safety
/// The type holds integers only, is `repr(C)` (or an integer itself), and any bytes of its size make a valid value.
pub unsafe trait Pod: Copy {}

// SAFETY: integers have no invalid values.
unsafe impl Pod for u8 {}
// SAFETY: as above.
unsafe impl Pod for u16 {}
// SAFETY: as above.
unsafe impl Pod for u32 {}
// SAFETY: as above.
unsafe impl Pod for u64 {}
// SAFETY: an array of valid records without space between them.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}
// SAFETY: repr(C), integers and an array of bytes only, no padding (gABI: 64 bytes).
unsafe impl Pod for Header {}
// SAFETY: repr(C), integers only, no padding (gABI: 56 bytes).
unsafe impl Pod for ProgramHeader {}
// SAFETY: repr(C), two u64.
unsafe impl Pod for Dyn {}
// SAFETY: repr(C), integers only, no padding (gABI: 24 bytes).
unsafe impl Pod for Sym {}
// SAFETY: repr(C), three integers of 64 bits.
unsafe impl Pod for Rela {}
// SAFETY: repr(C), integers only, no padding (20 bytes).
unsafe impl Pod for DefinitionRecord {}
// SAFETY: repr(C), two u32.
unsafe impl Pod for DefinitionName {}
// SAFETY: repr(C), integers only, no padding (16 bytes).
unsafe impl Pod for NeedRecord {}
// SAFETY: repr(C), integers only, no padding (16 bytes).
unsafe impl Pod for NeedVersionRecord {}

/// `len` records of type `T` one after another in memory, at any alignment.
///
/// Reading is bounded: an index that is not in the table gives `None`.
pub struct Table<'a, T> {
    first: NonNull<u8>,
    count: usize,
    memory: PhantomData<&'a T>,
}

impl<T> Clone for Table<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Table<'_, T> {}

// SAFETY: a table only reads, as a shared slice does; a record holds no pointer and no state of a thread.
unsafe impl<T: Pod> Send for Table<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Pod> Sync for Table<'_, T> {}

impl<T> core::fmt::Debug for Table<'_, T> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Table({:p}, {})", self.first, self.count)
    }
}

impl<T> Default for Table<'_, T> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<'a, T> Table<'a, T> {
    /// The table without records.
    pub const fn empty() -> Self {
        Table { first: NonNull::dangling(), count: 0, memory: PhantomData }
    }

    /// The `count` records from `first` on.
    ///
    /// # Safety
    /// `first` is not null, and `count` records from it can be read for as long as `'a`.
    pub const unsafe fn from_raw(first: *const u8, count: usize) -> Self {
        // SAFETY: the caller says that it is not null.
        let first = unsafe { NonNull::new_unchecked(first.cast_mut()) };
        Table { first, count, memory: PhantomData }
    }

    /// Number of records.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no record.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Address of the first record (dangling, never null, for the empty table).
    #[inline(always)]
    pub const fn as_ptr(&self) -> *const u8 {
        self.first.as_ptr().cast_const()
    }
}

impl<'a, T: Pod> Table<'a, T> {
    /// As many whole records as `bytes` holds; a rest is left out.
    pub const fn from_bytes(bytes: &'a [u8]) -> Self {
        if size_of::<T>() == 0 {
            return Self::empty();
        }
        let count = bytes.len() / size_of::<T>();
        // SAFETY: the slice holds at least count * size bytes and is borrowed for 'a.
        unsafe { Self::from_raw(bytes.as_ptr(), count) }
    }

    /// Record number `index`.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<T> {
        if index >= self.count {
            return None;
        }
        let first: *const T = self.as_ptr().cast();
        // SAFETY: index < count, and count records lie at `first` (contract of from_raw).
        let record = unsafe { first.add(index) };
        // SAFETY: the record is inside the table, and a Pod has no invalid values.
        Some(unsafe { record.read_unaligned() })
    }

    /// Asks the processor to have record number `index` at hand soon. Any index will do: nothing is read.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        let first: *const T = self.as_ptr().cast();
        prefetch(first.wrapping_add(index).cast());
    }

    /// All records in order.
    #[inline(always)]
    pub const fn iter(&self) -> TableIterator<'a, T> {
        TableIterator { table: *self, next: 0 }
    }

    /// The `length` records from number `start` on, if they all are in the table.
    pub fn sub(&self, start: usize, length: usize) -> Option<Table<'a, T>> {
        if start > self.count || length > self.count - start {
            return None;
        }
        let first: *const T = self.as_ptr().cast();
        // SAFETY: start <= count: the place is inside the table or just behind it.
        let start = unsafe { first.add(start) };
        // SAFETY: start + length <= count, so the records are part of this table.
        Some(unsafe { Table::from_raw(start.cast(), length) })
    }

    /// The records from number `start` on; none if `start` is behind the end.
    pub fn from(&self, start: usize) -> Table<'a, T> {
        let length = self.count.saturating_sub(start);
        self.sub(start, length).unwrap_or_default()
    }
}

impl<'a> Table<'a, u8> {
    /// The record at `offset`, counted in bytes, at any alignment.
    #[inline(always)]
    pub fn read<T: Pod>(&self, offset: usize) -> Option<T> {
        self.sub(offset, size_of::<T>())?.records().get(0)
    }

    /// As many whole records as the bytes hold.
    pub fn records<T: Pod>(&self) -> Table<'a, T> {
        if size_of::<T>() == 0 {
            return Table::empty();
        }
        // SAFETY: count * size bytes lie inside this table.
        unsafe { Table::from_raw(self.as_ptr(), self.count / size_of::<T>()) }
    }
}

impl<'a, T: Pod> IntoIterator for Table<'a, T> {
    type Item = T;
    type IntoIter = TableIterator<'a, T>;

    fn into_iter(self) -> TableIterator<'a, T> {
        self.iter()
    }
}

/// The records of a [`Table`] in order, each read when it is asked for.
#[derive(Debug, Clone)]
pub struct TableIterator<'a, T> {
    table: Table<'a, T>,
    next: usize,
}

impl<T: Pod> Iterator for TableIterator<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        let record = self.table.get(self.next)?;
        self.next += 1;
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.table.count - self.next;
        (left, Some(left))
    }
}

impl<T: Pod> ExactSizeIterator for TableIterator<'_, T> {}

/// Asks the processor to have what lies at an address at hand soon. A hint: no address is wrong.
#[inline(always)]
pub fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads nothing that the program could see and never faults.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// A string table (gABI 4, "String Table"): names that end in NUL, addressed by their offset.
#[derive(Debug, Clone, Copy, Default)]
pub struct StringTable<'a> {
    bytes: Table<'a, u8>,
}

impl<'a> StringTable<'a> {
    /// The string table without names.
    pub const fn empty() -> Self {
        StringTable { bytes: Table::empty() }
    }

    /// The string table in `bytes`.
    pub const fn from_bytes(bytes: &'a [u8]) -> Self {
        StringTable { bytes: Table::from_bytes(bytes) }
    }

    /// The string table in these bytes of an object.
    pub const fn from_table(bytes: Table<'a, u8>) -> Self {
        StringTable { bytes }
    }

    /// The string table of `length` bytes at `first`.
    ///
    /// # Safety
    /// As [`Table::from_raw`]. The bytes may be written meanwhile by relocation alone, on this thread: no name is looked at
    /// while that happens.
    pub const unsafe fn from_raw(first: *const u8, length: usize) -> Self {
        // SAFETY: the caller's promise is the one that from_raw wants.
        let bytes = unsafe { Table::from_raw(first, length) };
        StringTable { bytes }
    }

    /// Size in bytes.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no byte.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The name at `offset` without its NUL; `None` if no NUL follows inside the table.
    pub fn get(&self, offset: u64) -> Option<&'a [u8]> {
        let rest = self.bytes.from(usize::try_from(offset).ok()?);
        let words = rest.records::<u64>();
        let end_in = |(index, word)| Some(first_zero_byte(word)).filter(|&nul| nul < 8).map(|nul| index * 8 + nul);
        let length = match words.iter().enumerate().find_map(end_in) {
            Some(length) => length,
            // Behind the last whole word of the table.
            None => words.len() * 8 + rest.from(words.len() * 8).iter().position(|byte| byte == 0)?,
        };
        // SAFETY: `length` bytes (and a NUL) of the table lie there for 'a; Table's contract covers reading them.
        Some(unsafe { core::slice::from_raw_parts(rest.as_ptr(), length) })
    }

    /// The name at `offset` and its GNU hash, found in one pass of eight bytes a step: what each symbolic relocation asks for.
    #[inline]
    pub fn get_hashed(&self, offset: u32) -> Option<(&'a [u8], u32)> {
        let rest = self.bytes.from(offset as usize);
        let words = rest.records::<u64>();
        let mut hash = GNU_HASH_START;
        let mut length = 0;
        for word in words.iter() {
            let nul = first_zero_byte(word);
            if nul < 8 {
                hash = gnu_hash_part(hash, word, nul);
                length += nul;
                break;
            }
            hash = gnu_hash_word(hash, word);
            length += 8;
        }
        // Behind the last whole word of the table.
        if length == words.len() * 8 {
            let tail = rest.from(length);
            let more = tail.iter().position(|byte| byte == 0)?;
            hash = tail.iter().take(more).fold(hash, gnu_hash_step);
            length += more;
        }
        // SAFETY: `length` bytes (and a NUL) of the table lie there for 'a, as in `get`.
        let name = unsafe { core::slice::from_raw_parts(rest.as_ptr(), length) };
        Some((name, hash))
    }

    /// Asks the processor to have the name at `offset` at hand soon. Any offset will do: nothing is read.
    #[inline(always)]
    pub fn prefetch(&self, offset: u32) {
        self.bytes.prefetch(offset as usize);
    }

    /// Whether the name at `offset` is exactly `name`. Reads no further than the name and its NUL.
    ///
    /// This is in the hot path of symbol lookup: no search for the end, no call of `memcmp`.
    #[inline]
    pub fn equals(&self, offset: u32, name: &[u8]) -> bool {
        let Some(candidate) = self.bytes.sub(offset as usize, name.len().saturating_add(1)) else {
            return false;
        };
        // The end first: names with a common prefix (C++) differ in length more often than near their start.
        if candidate.get(name.len()) != Some(0) {
            return false;
        }
        begins_with(candidate, Table::from_bytes(name))
    }
}

/// Whether two names are the same. Names are short: no call of `memcmp`.
#[inline]
pub fn is_same_name(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && begins_with(Table::from_bytes(left), Table::from_bytes(right))
}

/// Whether the first `name.len()` bytes of both are the same.
#[inline(always)]
fn begins_with(candidate: Table<'_, u8>, name: Table<'_, u8>) -> bool {
    match name.len() {
        0 => true,
        1..4 => (0..name.len()).all(|index| candidate.get(index) == name.get(index)),
        4..8 => is_equal_by::<u32>(candidate, name),
        _ => is_equal_by::<u64>(candidate, name),
    }
}

/// The same where there is at least one word of them; the last word may overlap the one before.
#[inline(always)]
fn is_equal_by<Word: Pod + PartialEq>(candidate: Table<'_, u8>, name: Table<'_, u8>) -> bool {
    let last = name.len().saturating_sub(size_of::<Word>());
    if candidate.read::<Word>(last) != name.read::<Word>(last) {
        return false;
    }
    let (left, right) = (candidate.records::<Word>(), name.records::<Word>());
    (0..last.div_ceil(size_of::<Word>())).all(|index| left.get(index) == right.get(index))
}

/// The segments of one object in memory: turns a virtual address of the file into bytes that can be read.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// Where virtual address 0 would lie; may be outside the object, so it is only ever used with wrapping arithmetic.
    bias: *const u8,
    headers: Table<'a, ProgramHeader>,
    /// First virtual address that can be read, and how many from there.
    window_start: u64,
    window_size: u64,
}

// SAFETY: an image only reads, as a shared slice does.
unsafe impl Send for Image<'_> {}
// SAFETY: as above.
unsafe impl Sync for Image<'_> {}

impl<'a> Image<'a> {
    /// A loaded object. `bias` is the address of virtual address 0 (wrapping).
    ///
    /// # Safety
    /// For as long as `'a`, each PT_LOAD of `headers` that has PF_R or PF_W is mapped for p_memsz bytes at
    /// `bias + p_vaddr` and can be read, and none of these bytes lies at address 0.
    pub const unsafe fn loaded(bias: *const u8, headers: Table<'a, ProgramHeader>) -> Self {
        Image { bias, headers, window_start: 0, window_size: u64::MAX }
    }

    /// An object laid out in a buffer as in memory: `buffer[0]` is virtual address `lowest_vaddr`. For tests and tools.
    pub fn laid_out(buffer: &'a [u8], lowest_vaddr: u64, headers: Table<'a, ProgramHeader>) -> Self {
        Image {
            bias: buffer.as_ptr().wrapping_sub(lowest_vaddr as usize),
            headers,
            window_start: lowest_vaddr,
            window_size: buffer.len() as u64,
        }
    }

    /// The program headers of the object.
    pub const fn headers(&self) -> Table<'a, ProgramHeader> {
        self.headers
    }

    /// The address in memory of a virtual address, with no check at all.
    pub fn address(&self, vaddr: u64) -> usize {
        self.bias.addr().wrapping_add(vaddr as usize)
    }

    /// How many bytes of one segment, whose p_flags `may`, follow `vaddr` (that byte included).
    fn remaining(&self, vaddr: u64, may: impl Fn(u32) -> bool) -> Option<u64> {
        let window = self.window_size.checked_sub(vaddr.checked_sub(self.window_start)?)?;
        self.headers
            .iter()
            .filter(|header| header.p_type == PT_LOAD && may(header.p_flags))
            .filter_map(|header| header.p_memsz.checked_sub(vaddr.checked_sub(header.p_vaddr)?))
            .max()
            .map(|segment| segment.min(window))
    }

    /// The `length` bytes at `vaddr`, if one readable PT_LOAD holds all of them (p_memsz counts). No bytes lie anywhere.
    pub fn bytes(&self, vaddr: u64, length: u64) -> Option<Table<'a, u8>> {
        if length == 0 {
            return Some(Table::empty());
        }
        if self.remaining(vaddr, is_readable)? < length {
            return None;
        }
        let first = self.bias.wrapping_add(usize::try_from(vaddr).ok()?);
        if first.is_null() {
            return None;
        }
        // SAFETY: the bytes lie inside one readable PT_LOAD, and inside the buffer if there is one (contracts of loaded and
        // laid_out); not null by the check above.
        Some(unsafe { Table::from_raw(first, usize::try_from(length).ok()?) })
    }

    /// The `count` records at `vaddr`, if one readable PT_LOAD holds all of them.
    pub fn table<T: Pod>(&self, vaddr: u64, count: u64) -> Option<Table<'a, T>> {
        Some(self.bytes(vaddr, count.checked_mul(size_of::<T>() as u64)?)?.records())
    }

    /// As many whole records from `vaddr` on as its PT_LOAD holds; `None` if `vaddr` is in no readable PT_LOAD.
    pub fn table_to_end<T: Pod>(&self, vaddr: u64) -> Option<Table<'a, T>> {
        let length = self.remaining(vaddr, is_readable)?;
        if length == 0 {
            return None;
        }
        Some(self.bytes(vaddr, length)?.records())
    }

    /// The string table of `length` bytes at `vaddr`.
    pub fn strings(&self, vaddr: u64, length: u64) -> Option<StringTable<'a>> {
        Some(StringTable::from_table(self.bytes(vaddr, length)?))
    }

    /// The record at `vaddr`.
    pub fn read<T: Pod>(&self, vaddr: u64) -> Option<T> {
        self.table(vaddr, 1)?.get(0)
    }

    /// Where in the file the `length` bytes at `vaddr` stand, if one PT_LOAD takes all of them from there (p_filesz counts).
    pub fn file_offset(&self, vaddr: u64, length: u64) -> Option<u64> {
        self.headers.iter().filter(|header| header.p_type == PT_LOAD).find_map(|header| {
            let inside = vaddr.checked_sub(header.p_vaddr)?;
            let left = header.p_filesz.checked_sub(inside)?;
            if left < length { None } else { header.p_offset.checked_add(inside) }
        })
    }

    /// Whether one PT_LOAD whose p_flags has all of `flags_required` (PF_*) holds the `length` bytes at `vaddr`.
    /// For `length` 0: whether such a PT_LOAD holds or ends at `vaddr`.
    pub fn contains(&self, vaddr: u64, length: u64, flags_required: u32) -> bool {
        self.remaining(vaddr, |flags| flags & flags_required == flags_required).is_some_and(|left| left >= length)
    }
}

/// Whether a segment with these p_flags can be read: on x86-64 a page that can be written can be.
const fn is_readable(flags: u32) -> bool {
    flags & (PF_R | PF_W) != 0
}
