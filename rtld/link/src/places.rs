//! Where relocations may write: the writable segments of one object, and checked places in them.

use crate::fallible::{OutOfMemory, try_push};
use crate::object::Object;
use alloc::vec::Vec;
use goblin::elf64::program_header::PF_W;
use rtld_elf::segments;

/// The parts of an object that relocations may change, as addresses in memory.
#[derive(Debug)]
pub struct Places {
    bias: usize,
    ranges: Vec<(usize, usize)>,
    /// The range that the last relocation was in; the next one is nearly always there too.
    current: (usize, usize),
}

impl Places {
    /// The writable segments, or with `text` all segments.
    pub fn new(object: &Object, text: bool) -> Result<Places, OutOfMemory> {
        let mut ranges = Vec::new();
        for load in segments::loads(object.mapping.headers) {
            if text || load.p_flags & PF_W != 0 {
                let start = object.address(load.p_vaddr);
                try_push(&mut ranges, (start, start.wrapping_add(load.p_memsz as usize)))?;
            }
        }
        Ok(Places { bias: object.mapping.bias, ranges, current: (0, 0) })
    }

    /// The place of `size` bytes at a virtual address of an object, if it is in a writable segment. Allocates nothing: lazy
    /// binding asks, perhaps in a signal handler.
    pub fn find(object: &Object, vaddr: u64, size: usize) -> Option<Place> {
        let start = object.address(vaddr);
        let end = start.checked_add(size)?;
        let mut writable = segments::loads(object.mapping.headers).filter(|load| load.p_flags & PF_W != 0);
        let holds = writable.any(|load| {
            let first = object.address(load.p_vaddr);
            start >= first && end <= first.wrapping_add(load.p_memsz as usize)
        });
        holds.then_some(Place(start))
    }

    /// The place of `size` bytes at a virtual address of the file, if relocations may write there.
    #[inline]
    pub fn at(&mut self, vaddr: u64, size: usize) -> Option<Place> {
        let start = self.bias.wrapping_add(vaddr as usize);
        let end = start.checked_add(size)?;
        if start < self.current.0 || end > self.current.1 {
            self.current = *self.ranges.iter().find(|range| start >= range.0 && end <= range.1)?;
        }
        Some(Place(start))
    }
}

/// Memory that a relocation writes. Only [`Places`] makes one, so it lies inside a writable segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place(usize);

impl Place {
    /// Its address.
    pub fn address(self) -> usize {
        self.0
    }

    /// Writes a 64-bit word.
    #[inline]
    pub fn store(self, value: u64) {
        let word = core::ptr::with_exposed_provenance_mut::<u64>(self.0);
        // SAFETY: eight bytes of a mapped, writable segment; no reference into it exists (tables are read by value).
        unsafe { word.write_unaligned(value) };
    }

    /// Reads a 64-bit word.
    #[inline]
    pub fn load(self) -> u64 {
        let word = core::ptr::with_exposed_provenance::<u64>(self.0);
        // SAFETY: eight bytes of a mapped segment.
        unsafe { word.read_unaligned() }
    }

    /// Writes a 32-bit word.
    pub fn store_32(self, value: u32) {
        let word = core::ptr::with_exposed_provenance_mut::<u32>(self.0);
        // SAFETY: four bytes of a mapped, writable segment; no reference into it exists.
        unsafe { word.write_unaligned(value) };
    }

    /// The second word of a pair that was checked with a size of 16.
    pub fn second(self) -> Place {
        Place(self.0.wrapping_add(8))
    }
}
