//! Thread-local modules, and where the static ones live: variant II of the ELF TLS ABI. A static module's block lies below
//! the thread pointer at a fixed distance, in every thread. Modules that are loaded later are dynamic, until something
//! refers to them by that distance and the surplus has room.
//!
//! ```text
//!   lowest address                                   thread pointer
//!   | surplus for later | module n | ... | module 1 | thread control block, thread descriptor
//! ```

use crate::fallible::{OutOfMemory, try_extend, try_push};
use crate::object::{Object, ObjectIndex, ObjectTable};
use alloc::vec::Vec;
use core::cell::Cell;
use rtld_elf::Tls;

/// One thread-local module.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// The object.
    pub object: ObjectIndex,
    /// Distance of its block below the thread pointer; 0 for a dynamic module.
    pub offset: usize,
    /// Where its initial image is in memory.
    pub image: usize,
    /// What PT_TLS says.
    pub segment: Tls,
    /// How much of the static block was in use before it was placed.
    before: usize,
    /// Threads may have blocks of it already, so a dynamic module stays dynamic.
    settled: bool,
}

impl Module {
    /// Whether every thread has its block at a fixed distance.
    pub fn is_static(&self) -> bool {
        self.offset != 0
    }

    /// Fills a block of this module: the image, then zeros.
    ///
    /// # Safety
    /// `block` must be writable memory for the module, and the image must be mapped.
    pub unsafe fn fill(&self, block: usize) {
        let block = core::ptr::with_exposed_provenance_mut::<u8>(block);
        let image = core::ptr::with_exposed_provenance::<u8>(self.image);
        let (filled, size) = (self.segment.filesz as usize, self.segment.memsz as usize);
        // SAFETY: the block holds memsz bytes, of which the image gives the first filesz; digestion checked that
        // filesz is not the larger.
        unsafe { block.copy_from_nonoverlapping(image, filled) };
        let rest = block.wrapping_add(filled);
        // SAFETY: the rest of the same block.
        unsafe { rest.write_bytes(0, size.saturating_sub(filled)) };
    }

    /// Fills the static block of a thread.
    ///
    /// # Safety
    /// The module must be static, and `thread_pointer` that of a static block laid out by its plan.
    pub unsafe fn initialise(&self, thread_pointer: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.fill(thread_pointer.wrapping_sub(self.offset)) };
    }
}

impl PartialEq for Module {
    fn eq(&self, other: &Module) -> bool {
        (self.object, self.offset, self.image) == (other.object, other.offset, other.image)
    }
}

/// What a module id stands for.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The module; None for an id that is free.
    pub module: Option<Module>,
    /// When that was last changed: threads with an older vector look again.
    pub generation: usize,
}

/// All thread-local modules and the layout of the static block.
#[derive(Debug)]
pub struct TlsPlan {
    /// By module id less one. Cells, because a relocation may make a module static.
    slots: Vec<Cell<Slot>>,
    /// Bytes below the thread pointer that modules and extra areas take.
    used: Cell<usize>,
    /// Grows with each change of a slot.
    generation: usize,
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

/// There is not enough static TLS left for a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom {
    /// Bytes asked for.
    pub asked: usize,
    /// Their alignment.
    pub alignment: usize,
    /// Bytes left.
    pub left: usize,
}

/// The distance below the thread pointer for a block of this shape when `used` bytes are taken.
fn distance(used: usize, segment: &Tls) -> Option<usize> {
    let alignment = usize::try_from(segment.align.max(1)).ok()?;
    let size = usize::try_from(segment.memsz).ok()?;
    // The block's address must be congruent to p_vaddr modulo p_align: address = TP - offset with TP aligned.
    let misalignment = (segment.vaddr as usize) & (alignment - 1);
    let least = used.checked_add(size)?.checked_add(misalignment)?;
    let offset = least.checked_next_multiple_of(alignment)?.checked_sub(misalignment)?;
    isize::try_from(offset).ok().map(|_| offset)
}

impl TlsPlan {
    /// Lays out the blocks of all start-up objects in load order. None if the sizes are impossible.
    pub fn new(objects: &ObjectTable, extra: Extra) -> Result<Option<TlsPlan>, OutOfMemory> {
        let mut plan = TlsPlan::empty();
        for (index, object) in objects.iter() {
            let Some(segment) = object.mapping.layout.tls.filter(|segment| segment.memsz != 0) else { continue };
            let Some(offset) = distance(plan.used.get(), &segment) else { return Ok(None) };
            let before = plan.used.replace(offset);
            plan.alignment = plan.alignment.max(segment.align as usize);
            let module =
                Module { object: index, offset, image: object.address(segment.vaddr), segment, before, settled: true };
            try_push(&mut plan.slots, Cell::new(Slot { module: Some(module), generation: plan.generation }))?;
        }
        let finished = plan.finish(extra);
        Ok(finished.map(|()| plan))
    }

    fn empty() -> TlsPlan {
        TlsPlan {
            slots: Vec::new(),
            used: Cell::new(0),
            generation: 1,
            size: 0,
            alignment: CONTROL_BLOCK_ALIGNMENT,
            extra: None,
            own: 0,
        }
    }

    fn finish(&mut self, extra: Extra) -> Option<()> {
        if let Some(area) = extra.area {
            self.extra = Some(self.place_area(area)?);
        }
        self.own = self.place_area(extra.own)?;
        self.size = self.used.get().checked_add(extra.surplus)?.checked_next_multiple_of(self.alignment)?;
        isize::try_from(self.size).ok().map(drop)
    }

    fn place_area(&mut self, (size, alignment): (usize, usize)) -> Option<usize> {
        let offset = self.used.get().checked_add(size)?.checked_next_multiple_of(alignment.max(1))?;
        self.used.set(offset);
        self.alignment = self.alignment.max(alignment);
        Some(offset)
    }

    /// The plan as it is now, in memory of its own.
    pub fn try_clone(&self) -> Result<TlsPlan, OutOfMemory> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(self.slots.len()).map_err(|_| OutOfMemory)?;
        for slot in self.slots() {
            try_push(&mut slots, Cell::new(slot))?;
        }
        Ok(TlsPlan { slots, used: self.used.clone(), ..*self })
    }

    /// Adds the module of an object that is loaded later, as a dynamic one, in the first free slot.
    pub fn add(&mut self, index: ObjectIndex, object: &Object) -> Result<(), OutOfMemory> {
        let Some(segment) = object.mapping.layout.tls.filter(|segment| segment.memsz != 0) else { return Ok(()) };
        let module = Module {
            object: index,
            offset: 0,
            image: object.address(segment.vaddr),
            segment,
            before: 0,
            settled: false,
        };
        let slot = Slot { module: Some(module), generation: self.generation + 1 };
        match self.slots.iter().find(|slot| slot.get().module.is_none()) {
            Some(free) => free.set(slot),
            None => try_push(&mut self.slots, Cell::new(slot))?,
        }
        self.generation += 1;
        Ok(())
    }

    /// From now on threads may use the modules that were added: what is dynamic stays so.
    pub fn settle(&mut self) {
        for slot in &mut self.slots {
            if let Some(module) = &mut slot.get_mut().module {
                module.settled = true;
            }
        }
    }

    /// Takes an object's module out. Static room is given back if it was the last that was taken.
    pub fn remove(&mut self, index: ObjectIndex) {
        for slot in &self.slots {
            if let Some(module) = slot.get().module.filter(|module| module.object == index) {
                self.generation += 1;
                slot.set(Slot { module: None, generation: self.generation });
                if module.is_static() && module.offset == self.used.get() {
                    self.used.set(module.before);
                }
            }
        }
    }

    /// Gives a dynamic module a fixed place in the surplus. Its blocks in threads that exist must be filled before any
    /// code of the module runs.
    pub fn make_static(&self, index: ObjectIndex) -> Result<Module, NoRoom> {
        let used = self.used.get();
        let left = self.size.saturating_sub(used);
        let none = NoRoom { asked: 0, alignment: 1, left };
        let slot = self.slots.iter().find(|slot| slot.get().module.is_some_and(|module| module.object == index));
        let Some(slot) = slot else { return Err(none) };
        let Slot { module: Some(module), generation } = slot.get() else { return Err(none) };
        if module.is_static() {
            return Ok(module);
        }
        let asked = module.segment.memsz as usize;
        let alignment = module.segment.align.max(1) as usize;
        let refused = NoRoom { asked, alignment, left };
        let fits = |offset: &usize| !module.settled && *offset <= self.size && alignment <= self.alignment;
        let offset = distance(used, &module.segment).filter(fits).ok_or(refused)?;
        let module = Module { offset, before: used, ..module };
        slot.set(Slot { module: Some(module), generation });
        self.used.set(offset);
        Ok(module)
    }

    /// The newest generation of any slot.
    pub fn generation(&self) -> usize {
        self.generation
    }

    /// All slots; module id n is at position n - 1.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.slots.iter().map(Cell::get)
    }

    /// All modules there are.
    pub fn modules(&self) -> impl Iterator<Item = Module> + '_ {
        self.slots().filter_map(|slot| slot.module)
    }

    /// The slots as they are now, in memory of their own.
    pub fn table(&self) -> Result<TlsTable, OutOfMemory> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(self.slots.len()).map_err(|_| OutOfMemory)?;
        let mut ids = Vec::new();
        for (position, slot) in self.slots().enumerate() {
            try_extend(&mut slots, &[slot])?;
            if let Some(module) = slot.module {
                while ids.len() <= module.object.position() {
                    try_extend(&mut ids, &[0])?;
                }
                if let Some(id) = ids.get_mut(module.object.position()) {
                    *id = position as u32 + 1;
                }
            }
        }
        Ok(TlsTable { slots, ids, generation: self.generation })
    }

    /// The module id of an object, 0 if it has none.
    pub fn id(&self, object: ObjectIndex) -> u32 {
        let position = self.slots().position(|slot| slot.module.is_some_and(|module| module.object == object));
        position.map_or(0, |position| position as u32 + 1)
    }

    /// The module of an object.
    pub fn module(&self, object: ObjectIndex) -> Option<Module> {
        self.modules().find(|module| module.object == object)
    }
}

/// The modules at one moment, for running threads to read.
#[derive(Debug, Default)]
pub struct TlsTable {
    /// By module id less one.
    pub slots: Vec<Slot>,
    /// By object: its module id; 0, or nothing, for none.
    ids: Vec<u32>,
    /// The newest generation of any slot.
    pub generation: usize,
}

impl TlsTable {
    /// What a module id stands for.
    pub fn slot(&self, id: usize) -> Option<Slot> {
        self.slots.get(id.checked_sub(1)?).copied()
    }

    /// The module id of an object, 0 if it has none.
    pub fn id(&self, object: ObjectIndex) -> usize {
        self.ids.get(object.position()).map_or(0, |&id| id as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut below = 0;
        for (vaddr, memsz, align) in shapes {
            let offset = distance(below, &Tls { vaddr, filesz: 0, memsz, align }).unwrap();
            assert!(offset >= below + memsz as usize, "overlap");
            let address = 0x7000_0000_0000_usize - offset;
            assert_eq!(address as u64 % align, vaddr % align, "{vaddr:#x} {align}");
            below = offset;
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert_eq!(distance(0, &Tls { vaddr: 0, filesz: 0, memsz: u64::MAX - 5, align: 64 }), None);
        assert_eq!(distance(0, &Tls { vaddr: 0, filesz: 0, memsz: 1 << 63, align: 64 }), None);
    }

    fn plan() -> TlsPlan {
        let mut plan = TlsPlan::empty();
        plan.used.set(10);
        plan.finish(Extra { area: Some((32, 32)), own: (64, 64), surplus: 1664 }).unwrap();
        plan
    }

    #[test]
    fn the_areas_and_the_surplus_come_last() {
        let plan = plan();
        assert_eq!((plan.extra, plan.own, plan.size), (Some(64), 128, 1792));
    }

    fn with_module(plan: &mut TlsPlan, object: u32, memsz: u64) -> ObjectIndex {
        let object = ObjectIndex(object);
        let segment = Tls { vaddr: 0, filesz: 0, memsz, align: 16 };
        let module = Module { object, offset: 0, image: 0, segment, before: 0, settled: false };
        try_push(&mut plan.slots, Cell::new(Slot { module: Some(module), generation: 1 })).unwrap();
        object
    }

    #[test]
    fn the_surplus_is_given_out_and_back() {
        let mut plan = plan();
        let first = with_module(&mut plan, 1, 1000);
        let second = with_module(&mut plan, 2, 1000);
        assert_eq!(plan.make_static(first).unwrap().offset, 128 + 1008);
        assert_eq!(plan.make_static(second), Err(NoRoom { asked: 1000, alignment: 16, left: 1792 - 1136 }));
        plan.remove(first);
        plan.settle();
        assert!(plan.make_static(second).is_err(), "threads may have blocks of a settled module");
        let slot = plan.slots[1].get_mut();
        slot.module = slot.module.map(|module| Module { settled: false, ..module });
        assert_eq!(plan.make_static(second).unwrap().offset, 1136);
        assert_eq!(plan.id(second), 2);
        assert_eq!(plan.id(first), 0);
    }
}
