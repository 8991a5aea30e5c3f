//! Where thread-local variables of the start-up objects live: variant II of the ELF TLS ABI. Each module's block lies
//! below the thread pointer at a fixed distance, in every thread.
//!
//! ```text
//!   lowest address                                   thread pointer
//!   | surplus for later | module n | ... | module 1 | thread control block, thread descriptor
//! ```

use crate::fallible::{OutOfMemory, try_filled, try_push};
use crate::object::{ObjectIndex, ObjectSet};
use alloc::vec::Vec;
use rtld_elf::Tls;

/// One thread-local module.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// The object.
    pub object: ObjectIndex,
    /// Distance of its block below the thread pointer.
    pub offset: usize,
    /// Where its initial image is in memory.
    pub image: usize,
    /// What PT_TLS says.
    pub segment: Tls,
}

impl Module {
    /// Fills this module's block of a thread: the image, then zeros.
    ///
    /// # Safety
    /// `thread_pointer` must be that of a static block laid out by this plan, and the image must be mapped.
    pub unsafe fn initialise(&self, thread_pointer: usize) {
        let block = core::ptr::with_exposed_provenance_mut::<u8>(thread_pointer.wrapping_sub(self.offset));
        let image = core::ptr::with_exposed_provenance::<u8>(self.image);
        let (filled, size) = (self.segment.filesz as usize, self.segment.memsz as usize);
        // SAFETY: the block holds memsz bytes, of which the image gives the first filesz; digestion checked that
        // filesz is not the larger.
        unsafe { block.copy_from_nonoverlapping(image, filled) };
        let rest = block.wrapping_add(filled);
        // SAFETY: the rest of the same block.
        unsafe { rest.write_bytes(0, size.saturating_sub(filled)) };
    }
}

/// The layout of the static block.
#[derive(Debug)]
pub struct TlsPlan {
    modules: Vec<Module>,
    /// By object: its module id, 0 for none.
    ids: Vec<u32>,
    /// Bytes below the thread pointer that modules and extra areas take.
    pub used: usize,
    /// Bytes below the thread pointer in all, the surplus included.
    pub size: usize,
    /// Alignment of the thread pointer.
    pub alignment: usize,
    /// Distance of the C library's area below the thread pointer, if one was asked for.
    pub extra: Option<usize>,
    /// Distance of the loader's own area below the thread pointer.
    pub own: usize,
}

/// The thread control block's own alignment (a cache line).
const CONTROL_BLOCK_ALIGNMENT: usize = 64;

/// What the block must have room for besides the modules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extra {
    /// An area for the C library, as (size, alignment): glibc's rseq area.
    pub area: Option<(usize, usize)>,
    /// An area for the loader itself, as (size, alignment).
    pub own: (usize, usize),
    /// Free room for libraries that are loaded later.
    pub surplus: usize,
}

impl TlsPlan {
    /// Lays out the blocks of all objects in load order. None if the sizes are impossible.
    pub fn new(objects: &ObjectSet, extra: Extra) -> Result<Option<TlsPlan>, OutOfMemory> {
        let mut plan = TlsPlan {
            modules: Vec::new(),
            ids: try_filled(0, objects.len())?,
            used: 0,
            size: 0,
            alignment: CONTROL_BLOCK_ALIGNMENT,
            extra: None,
            own: 0,
        };
        for (index, object) in objects.iter() {
            let Some(segment) = object.mapping.layout.tls.filter(|segment| segment.memsz != 0) else {
                continue;
            };
            let Some(offset) = plan.place(&segment) else {
                return Ok(None);
            };
            let image = object.address(segment.vaddr);
            try_push(&mut plan.modules, Module { object: index, offset, image, segment })?;
            if let Some(id) = plan.ids.get_mut(index.position()) {
                *id = plan.modules.len() as u32;
            }
        }
        let finished = plan.finish(extra);
        Ok(finished.map(|()| plan))
    }

    /// The distance for a block of this shape below those placed so far.
    fn place(&mut self, segment: &Tls) -> Option<usize> {
        let alignment = usize::try_from(segment.align.max(1)).ok()?;
        let size = usize::try_from(segment.memsz).ok()?;
        // The block's address must be congruent to p_vaddr modulo p_align: address = TP - offset with TP aligned.
        let misalignment = (segment.vaddr as usize) & (alignment - 1);
        let least = self.used.checked_add(size)?.checked_add(misalignment)?;
        let offset = least.checked_next_multiple_of(alignment)?.checked_sub(misalignment)?;
        self.used = offset;
        self.alignment = self.alignment.max(alignment);
        isize::try_from(offset).ok()?;
        Some(offset)
    }

    fn finish(&mut self, extra: Extra) -> Option<()> {
        if let Some(area) = extra.area {
            self.extra = Some(self.place_area(area)?);
        }
        self.own = self.place_area(extra.own)?;
        self.size = self.used.checked_add(extra.surplus)?.checked_next_multiple_of(self.alignment)?;
        isize::try_from(self.size).ok().map(drop)
    }

    fn place_area(&mut self, (size, alignment): (usize, usize)) -> Option<usize> {
        self.used = self.used.checked_add(size)?.checked_next_multiple_of(alignment.max(1))?;
        self.alignment = self.alignment.max(alignment);
        Some(self.used)
    }

    /// All modules; module id n is at position n - 1.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The module id of an object, 0 if it has none.
    pub fn id(&self, object: ObjectIndex) -> u32 {
        self.ids.get(object.position()).copied().unwrap_or(0)
    }

    /// The module of an object.
    pub fn module(&self, object: ObjectIndex) -> Option<&Module> {
        self.modules.get((self.id(object) as usize).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> TlsPlan {
        TlsPlan { modules: Vec::new(), ids: Vec::new(), used: 0, size: 0, alignment: 64, extra: None, own: 0 }
    }

    #[test]
    fn blocks_do_not_overlap_and_are_congruent_to_their_addresses() {
        let shapes = [
            (0x1000, 3, 1),
            (0x2020, 100, 64),
            (0x3008, 8, 4096),
            (0, 1, 1),
            (0x10, 24, 32),
            (0x7, 5, 8),
            (0x40, 0x1234, 1024),
        ];
        let mut plan = plan();
        let mut below = 0;
        for (vaddr, memsz, align) in shapes {
            let offset = plan.place(&Tls { vaddr, filesz: 0, memsz, align }).unwrap();
            assert!(offset >= below + memsz as usize, "overlap");
            let address = 0x7000_0000_0000_usize - offset;
            assert_eq!(address as u64 % align, vaddr % align, "{vaddr:#x} {align}");
            below = offset;
        }
        assert_eq!(plan.alignment, 4096);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert_eq!(plan().place(&Tls { vaddr: 0, filesz: 0, memsz: u64::MAX - 5, align: 64 }), None);
        assert_eq!(plan().place(&Tls { vaddr: 0, filesz: 0, memsz: 1 << 63, align: 64 }), None);
    }

    #[test]
    fn the_areas_and_the_surplus_come_last() {
        let mut plan = plan();
        plan.place(&Tls { vaddr: 0, filesz: 0, memsz: 10, align: 8 }).unwrap();
        plan.finish(Extra { area: Some((32, 32)), own: (64, 64), surplus: 1664 }).unwrap();
        assert_eq!(plan.extra, Some(64));
        assert_eq!(plan.own, 128);
        assert_eq!(plan.size, 1792);
    }
}
