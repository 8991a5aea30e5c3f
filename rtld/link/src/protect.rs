//! Protections that change around relocation: text that relocations write, and data that is constant afterwards.
//! Nothing is ever writable and executable at once.

use crate::error::{Error, Reason};
use crate::map::{self, Pages};
use crate::object::{Object, Role};
use goblin::elf64::program_header::{PF_W, ProgramHeader};
use rtld_elf::segments;
use rtld_sys::memory::{self, Fill};

/// Makes the segments that are not writable so, without execution, for the time of their relocation.
pub fn open_text(object: &Object, pages: Pages) -> Result<(), Reason> {
    protect_text(object, pages, |_| memory::READ | memory::WRITE)
}

/// Gives the segments the protection that the file asks for.
pub fn close_text(object: &Object, pages: Pages) -> Result<(), Reason> {
    protect_text(object, pages, map::protection)
}

fn protect_text(object: &Object, pages: Pages, protection: impl Fn(u32) -> u32) -> Result<(), Reason> {
    for load in segments::loads(object.mapping.headers).filter(|load| load.p_flags & PF_W == 0) {
        let start = pages.down(object.address(load.p_vaddr));
        let end = pages.up(object.address(load.p_vaddr.wrapping_add(load.p_memsz)));
        // SAFETY: the segment is ours and none of its code runs while it is being relocated.
        unsafe { memory::protect(start, end.wrapping_sub(start), protection(load.p_flags)) }
            .map_err(Reason::TextWritable)?;
    }
    Ok(())
}

/// Fewer pages than these are left to their faults.
const FEW_PAGES: usize = 8;

/// With so many relocations a page, nearly every page has one.
const RELOCATIONS_A_PAGE: usize = 16;

/// So many pages are made in one call: few enough that what the call has copied is in the cache when it is relocated.
const WINDOW: usize = 64;

/// Makes the pages of what is constant after relocation just before relocation comes to them, many in one call, which costs
/// less than a fault for each (docs/performance.md). Only where relocations are so dense that nearly every page has one, so
/// that hardly a page is made that would not be made anyway; other data may stay untouched for the most part.
#[derive(Debug)]
pub struct Preparation {
    /// What is to be made from here on; the highest address if nothing is.
    next: usize,
    end: usize,
    window: usize,
}

impl Preparation {
    /// For an object with so many relocations.
    pub fn new(object: &Object, relocations: usize, pages: Pages) -> Preparation {
        let nothing = Preparation { next: usize::MAX, end: 0, window: 0 };
        let Some(range) = object.mapping.layout.relro else { return nothing };
        let start = pages.down(object.address(range.start));
        let end = pages.up(object.address(range.end()));
        let count = end.wrapping_sub(start) / pages.size();
        if count < FEW_PAGES || relocations / RELOCATIONS_A_PAGE < count {
            return nothing;
        }
        let holds = |load: &ProgramHeader| range.start.wrapping_sub(load.p_vaddr) < load.p_memsz;
        let segment = segments::loads(object.mapping.headers).find(holds);
        // The program is mapped by the kernel.
        if object.role != Role::Program && segment.is_some_and(|segment| map::fill(&segment, pages) == Fill::Now) {
            return nothing;
        }
        Preparation { next: start, end, window: WINDOW.wrapping_mul(pages.size()) }
    }

    /// Relocation comes to this address; the one before was lower, as a rule.
    #[inline(always)]
    pub fn reach(&mut self, address: usize) {
        if address >= self.next {
            self.make(address);
        }
    }

    #[cold]
    fn make(&mut self, address: usize) {
        // What was passed over has no relative relocations; its pages are left to their faults.
        let skipped = address.wrapping_sub(self.next) / self.window.max(1);
        let start = self.next.wrapping_add(skipped.wrapping_mul(self.window));
        let end = start.wrapping_add(self.window).min(self.end);
        if start >= end {
            self.next = usize::MAX;
            return;
        }
        memory::prepare_to_write(start, end.wrapping_sub(start));
        self.next = end;
    }
}

/// Takes away write access to what is constant after relocation. Only whole pages: the last bytes of a region that
/// does not end on a page stay writable, as the rest of their page must.
pub fn protect_constant(object: &Object, pages: Pages) -> Result<(), Error> {
    let Some(range) = object.mapping.layout.relro else {
        return Ok(());
    };
    let start = pages.down(object.address(range.start));
    let end = pages.down(object.address(range.end()));
    if end <= start {
        return Ok(());
    }
    // SAFETY: the object is relocated; the file promises that nothing writes there any more.
    unsafe { memory::protect(start, end - start, memory::READ) }
        .map_err(|error| Reason::Protect(error).of(object.path.as_bytes()))
}
