//! Protections that change around relocation: text that relocations write, and data that is constant afterwards.
//! Nothing is ever writable and executable at once.

use crate::error::{Error, Reason};
use crate::map::{self, Pages};
use crate::object::Object;
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

/// Fewer pages than these beside each other are left to their faults.
const FEW_IN_RUN: usize = 4;

/// How far the search for the end of a run of pages looks ahead at first, in relocations.
const STRIDE: usize = 64;

/// Makes the pages of what is constant after relocation just before relocation comes to them, many in one call, which costs
/// less than a fault for each (docs/performance.md). Only those that have relative relocations: others may stay untouched.
#[derive(Debug)]
pub struct Preparation {
    /// What is to be made from here on; the highest address if nothing is.
    next: usize,
    end: usize,
    page: usize,
}

impl Preparation {
    /// For an object with so many relocations.
    pub fn new(object: &Object, relocations: usize, pages: Pages) -> Preparation {
        let nothing = Preparation { next: usize::MAX, end: 0, page: 0 };
        let Some(range) = object.mapping.layout.relro.filter(|_| pages.are_of_start()) else { return nothing };
        let start = pages.down(object.address(range.start));
        let end = pages.up(object.address(range.end()));
        let count = end.wrapping_sub(start) / pages.size();
        if count < FEW_PAGES || relocations / RELOCATIONS_A_PAGE < count {
            return nothing;
        }
        let holds = |load: &ProgramHeader| range.start.wrapping_sub(load.p_vaddr) < load.p_memsz;
        let segment = segments::loads(object.mapping.headers).find(holds);
        if segment.is_some_and(|segment| map::fill(&segment, pages) == Fill::Now) {
            return nothing;
        }
        Preparation { next: start, end, page: pages.size() }
    }

    /// Whether relocation comes to pages that nothing was decided about; it goes upwards, as a rule.
    #[inline(always)]
    pub fn is_due(&self, address: usize) -> bool {
        address >= self.next
    }

    /// Makes the pages from that of `address` on that relocations write to, up to the first that none does. `upcoming` are their
    /// addresses, the first of them behind `address`.
    #[cold]
    pub fn make(&mut self, address: usize, upcoming: impl Iterator<Item = usize> + Clone) {
        if address >= self.end {
            self.next = usize::MAX;
            return;
        }
        let start = address & !self.page.wrapping_sub(1);
        let limit = start.saturating_add(WINDOW.saturating_mul(self.page)).min(self.end);
        let end = end_of_run(start, limit, self.page, upcoming);
        let length = end.wrapping_sub(start);
        if length >= FEW_IN_RUN.wrapping_mul(self.page) {
            memory::prepare_to_write(start, length);
        }
        self.next = end;
    }
}

/// The end of the run of pages from `start` on that all have one of the ascending addresses in `upcoming`; `limit` at the most, if
/// `start` is below it. Looks at few of them.
fn end_of_run(start: usize, limit: usize, page: usize, upcoming: impl Iterator<Item = usize> + Clone) -> usize {
    let (mut last, mut upcoming, mut stride) = (start, upcoming, STRIDE);
    while last.wrapping_add(page) < limit {
        let mut further = upcoming.clone();
        // On the same page or the one after it: no page between them is without an address.
        match further.nth(stride - 1).map(|address| address & !page.wrapping_sub(1)) {
            Some(next) if next >= last && next - last <= page => (last, upcoming) = (next, further),
            _ if stride == 1 => break,
            _ => stride /= 4,
        }
    }
    last.wrapping_add(page)
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    /// Addresses on the pages with these numbers, so many on each.
    fn on(pages: &[usize], each: usize) -> std::vec::IntoIter<usize> {
        let addresses = pages.iter().flat_map(|page| (0..each).map(move |place| page * PAGE + place * 8));
        addresses.collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn a_run_ends_before_the_first_page_without_an_address() {
        for each in [1, 2, 3, 5, 17, 63, 64, 65, 500, 512] {
            let dense: Vec<_> = (10..40).collect();
            assert_eq!(end_of_run(10 * PAGE, 100 * PAGE, PAGE, on(&dense, each)), 40 * PAGE, "{each}");
            for gap in 11..40 {
                let pages: Vec<_> = (10..80).filter(|&page| page != gap).collect();
                assert_eq!(end_of_run(10 * PAGE, 100 * PAGE, PAGE, on(&pages, each)), gap * PAGE, "{each}");
            }
        }
    }

    #[test]
    fn a_run_ends_at_its_limit() {
        let dense: Vec<_> = (10..40).collect();
        assert_eq!(end_of_run(10 * PAGE, 20 * PAGE, PAGE, on(&dense, 100)), 20 * PAGE);
        assert_eq!(end_of_run(10 * PAGE, 11 * PAGE, PAGE, on(&dense, 100)), 11 * PAGE);
        assert_eq!(end_of_run(10 * PAGE, 20 * PAGE, PAGE, on(&[], 1)), 11 * PAGE);
    }

    #[test]
    fn addresses_that_go_down_end_a_run() {
        assert_eq!(end_of_run(10 * PAGE, 20 * PAGE, PAGE, on(&[10, 11, 9, 12, 13], 1)), 12 * PAGE);
    }
}
