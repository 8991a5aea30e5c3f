//! A mapped library of the C library's family, looked at by itself: its own definitions by name, its words.
//!
//! Owns lookup inside one object without versions and scopes, for names that only one object may define. It follows no
//! dependency and knows no glibc structure.

use rtld_elf::symbol::SymbolView;
use rtld_elf::{Dynamic, Hash, Image, Pod, Sym, gnu_hash, relocation, sysv_hash};

/// An object that is mapped (or laid out in a buffer), and what its dynamic section says.
#[derive(Debug, Clone, Copy)]
pub struct Library<'a> {
    /// Address of virtual address 0 (wrapping).
    pub base: usize,
    /// Its segments.
    pub image: Image<'a>,
    /// Its dynamic section.
    pub dynamic: &'a Dynamic<'a>,
}

impl<'a> Library<'a> {
    /// The object's own definition of `name`, of whatever version.
    pub fn symbol(&self, name: &[u8]) -> Option<Sym> {
        let definition = |index: u32| {
            let symbol = self.dynamic.symbols.get(index)?;
            (!symbol.is_undefined() && self.dynamic.strings.equals(symbol.st_name, name)).then_some(symbol)
        };
        match &self.dynamic.hash {
            Hash::Gnu(table) => {
                let hash = gnu_hash(name);
                if !table.maybe(hash) {
                    return None;
                }
                table.candidates(hash).find_map(definition)
            }
            Hash::Sysv(table) => table.candidates(sysv_hash(name)).find_map(definition),
            Hash::None => None,
        }
    }

    /// The address of the object's own definition of `name`; an IFUNC gives its resolver.
    pub fn address(&self, name: &[u8]) -> Option<usize> {
        let symbol = self.symbol(name)?;
        if symbol.is_absolute() {
            return Some(symbol.st_value as usize);
        }
        Some(self.base.wrapping_add(symbol.st_value as usize))
    }

    /// The record at a virtual address.
    pub fn read<T: Pod>(&self, vaddr: u64) -> Option<T> {
        self.image.read(vaddr)
    }

    /// The word at `vaddr` as linked at base 0. Only right before the object's relocations are applied: a RELATIVE relocation
    /// keeps the value in its addend, a RELR one in the word itself.
    pub fn link_time_word(&self, vaddr: u64) -> Option<u64> {
        let relative = self
            .dynamic
            .relocations
            .iter()
            .find(|record| record.r_offset == vaddr && relocation::kind(record) == relocation::R_X86_64_RELATIVE);
        match relative {
            Some(record) => Some(record.r_addend as u64),
            None => self.read(vaddr),
        }
    }
}
