//! Relocations of the x86-64 psABI as records: types, fields, names, and the packed relative form (RELR). Applies none.

use core::fmt;

use crate::pod::TableIterator;
use crate::{Rela, Table};

pub use goblin::elf64::reloc::{
    R_X86_64_32, R_X86_64_64, R_X86_64_COPY, R_X86_64_DTPMOD64, R_X86_64_DTPOFF64, R_X86_64_GLOB_DAT,
    R_X86_64_IRELATIVE, R_X86_64_JUMP_SLOT, R_X86_64_NONE, R_X86_64_PC32, R_X86_64_PC64, R_X86_64_RELATIVE,
    R_X86_64_SIZE32, R_X86_64_SIZE64, R_X86_64_TLSDESC, R_X86_64_TPOFF64,
};

/// The type of a relocation (R_X86_64_*).
#[inline(always)]
pub const fn kind(relocation: &Rela) -> u32 {
    relocation.r_info as u32
}

/// The symbol index of a relocation; 0 for none.
#[inline(always)]
pub const fn symbol(relocation: &Rela) -> u32 {
    (relocation.r_info >> 32) as u32
}

/// A relocation type, to be written into a message: its name, or its number for one that does not occur in loaded objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name(pub u32);

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            R_X86_64_NONE => "R_X86_64_NONE",
            R_X86_64_64 => "R_X86_64_64",
            R_X86_64_PC32 => "R_X86_64_PC32",
            R_X86_64_COPY => "R_X86_64_COPY",
            R_X86_64_GLOB_DAT => "R_X86_64_GLOB_DAT",
            R_X86_64_JUMP_SLOT => "R_X86_64_JUMP_SLOT",
            R_X86_64_RELATIVE => "R_X86_64_RELATIVE",
            R_X86_64_32 => "R_X86_64_32",
            R_X86_64_DTPMOD64 => "R_X86_64_DTPMOD64",
            R_X86_64_DTPOFF64 => "R_X86_64_DTPOFF64",
            R_X86_64_TPOFF64 => "R_X86_64_TPOFF64",
            R_X86_64_PC64 => "R_X86_64_PC64",
            R_X86_64_SIZE32 => "R_X86_64_SIZE32",
            R_X86_64_SIZE64 => "R_X86_64_SIZE64",
            R_X86_64_TLSDESC => "R_X86_64_TLSDESC",
            R_X86_64_IRELATIVE => "R_X86_64_IRELATIVE",
            other => return write!(formatter, "{other:#x}"),
        })
    }
}

/// The virtual addresses of the 64-bit words that a DT_RELR table says to relocate, in its order.
///
/// An even entry is an address; an odd one is a bitmap of the 63 words that follow the last place (gABI proposal "RELR").
/// The addresses are as hostile as the table. Bitmaps before the first address stand for places from 0 on.
pub fn relr_addresses(table: Table<'_, u64>) -> RelrAddresses<'_> {
    RelrAddresses { entries: table.iter(), base: 0, bitmap: 0, place: 0 }
}

/// See [`relr_addresses`].
#[derive(Debug, Clone)]
pub struct RelrAddresses<'a> {
    entries: TableIterator<'a, u64>,
    /// Where the next bitmap starts.
    base: u64,
    /// What is left of the bitmap in hand, and the place of its lowest bit.
    bitmap: u64,
    place: u64,
}

impl Iterator for RelrAddresses<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        while self.bitmap == 0 {
            let entry = self.entries.next()?;
            if entry & 1 == 0 {
                self.base = entry.wrapping_add(8);
                return Some(entry);
            }
            self.bitmap = entry >> 1;
            self.place = self.base;
            self.base = self.base.wrapping_add(63 * 8);
        }
        let skipped = u64::from(self.bitmap.trailing_zeros());
        let address = self.place.wrapping_add(skipped * 8);
        self.place = address.wrapping_add(8);
        self.bitmap = self.bitmap >> skipped >> 1;
        Some(address)
    }
}
