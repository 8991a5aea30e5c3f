//! Memory in blocks of fixed sizes, cut from pages. Owns the free blocks and what is left of the last page that was cut.
//!
//! It is whole after every single store: a copy of the process that is made in the middle of a call (a fork in another thread)
//! finds an arena that works, and has lost some blocks or pages at the most. That is why it keeps lists of blocks of one size
//! and never joins neighbours. Pages of which no block is used are made fresh again (`chunks`), so that what is resident follows
//! what is used, and not the sum of each size's peak. The caller serialises calls and knows the layout of what it gives back, so
//! blocks have no headers.

use crate::chunks::{Chunks, PAGE, Pages};
use core::alloc::Layout;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The least size and alignment of a block.
const STEP: usize = 16;
/// Sizes up to here go up in steps of STEP, above it in eight steps to each power of two.
const SMALL: usize = 128;
/// What is larger has a mapping of its own, which is given back.
const LARGEST: usize = 256 << 10;
const CLASSES: usize = SMALL / STEP + 8 * (LARGEST / SMALL).ilog2() as usize;

/// The arena. All zero is an empty one.
#[derive(Debug)]
pub struct Arena<P> {
    /// By class: the first free block, which holds the address of the next one.
    free: [AtomicUsize; CLASSES],
    /// The unused rest of the last page that was cut.
    start: AtomicUsize,
    end: AtomicUsize,
    chunks: Chunks,
    pages: P,
}

/// The class of blocks that a size belongs to; None for what is too large for any.
fn class_of(size: usize) -> Option<usize> {
    let size = size.max(1);
    if size <= SMALL {
        return Some((size - 1) / STEP);
    }
    if size > LARGEST {
        return None;
    }
    // The power of two below, and which eighth of the way to the next one.
    let power = (size - 1).ilog2();
    let eighth = ((size - 1) >> (power - 3)) & 7;
    Some(SMALL / STEP + 8 * (power - SMALL.ilog2()) as usize + eighth)
}

/// The size of a class's blocks.
fn size_of_class(class: usize) -> usize {
    match class.checked_sub(SMALL / STEP) {
        None => (class + 1) * STEP,
        Some(above) => (SMALL << (above / 8)) / 8 * (9 + above % 8),
    }
}

/// What is allocated for a layout: the size, and whether the block begins before what the caller gets.
fn plan(layout: Layout) -> Option<(usize, bool)> {
    if layout.align() <= STEP {
        return Some((layout.size(), false));
    }
    // Room for the address of the block in front of what is given out, and for its alignment.
    Some((layout.size().checked_add(layout.align())?.checked_add(STEP)?, true))
}

fn word(address: usize) -> *mut usize {
    core::ptr::with_exposed_provenance_mut(address)
}

impl<P: Pages> Arena<P> {
    /// An arena without memory.
    pub const fn new(pages: P) -> Arena<P> {
        Arena {
            free: [const { AtomicUsize::new(0) }; CLASSES],
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            chunks: Chunks::new(),
            pages,
        }
    }

    /// From now on pages of which no block is used are given back, but for those that were cut before: what is not called before
    /// memory comes and goes costs a start nothing.
    pub fn settle(&self) {
        self.chunks.count();
    }

    /// From now on pages are made by their faults alone: a process that runs may not be let to have them made (seccomp).
    pub fn stop_making(&self) {
        self.chunks.stop_making();
    }

    /// Memory for a layout: its address, and whether it is known to be zero.
    pub fn allocate(&self, layout: Layout) -> Option<(usize, bool)> {
        let (size, has_front) = plan(layout)?;
        let (block, is_zero) = self.take(size)?;
        if !has_front {
            return Some((block, is_zero));
        }
        let address = block.checked_add(STEP)?.checked_next_multiple_of(layout.align())?;
        // SAFETY: the block has room for a word in front of the address.
        unsafe { word(address).wrapping_sub(1).write(block) };
        Some((address, is_zero))
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// `address` must be what `allocate` gave for this layout, and no longer be used.
    pub unsafe fn free(&self, address: usize, layout: Layout) {
        let Some((size, has_front)) = plan(layout) else { return };
        // SAFETY: allocate wrote the word.
        let block = if has_front { unsafe { word(address).wrapping_sub(1).read() } } else { address };
        match class_of(size) {
            Some(class) => self.give(class, block),
            // SAFETY: the mapping was made for this block alone (the caller's promise).
            None => unsafe { self.pages.unmap(block, size.next_multiple_of(PAGE)) },
        }
    }

    /// Whether memory of one layout is as good for a size, without being moved.
    pub fn fits(&self, layout: Layout, size: usize) -> bool {
        let new = Layout::from_size_align(size, layout.align()).ok().and_then(plan);
        match (plan(layout), new) {
            (Some((old, _)), Some((new, _))) => class_of(old).is_some_and(|class| class_of(new) == Some(class)),
            _ => false,
        }
    }

    fn take(&self, size: usize) -> Option<(usize, bool)> {
        let Some(class) = class_of(size) else {
            return self.pages.map(size.checked_next_multiple_of(PAGE)?).map(|block| (block, true));
        };
        let (list, size) = (self.free.get(class)?, size_of_class(class));
        let first = list.load(Ordering::Relaxed);
        if first == 0 {
            return self.cut(size).map(|block| (block, true));
        }
        self.chunks.hold(first, size);
        // SAFETY: a free block, which holds the address of the next one.
        let next = unsafe { word(first).read() };
        list.store(next, Ordering::Release);
        Some((first, false))
    }

    fn give(&self, class: usize, block: usize) {
        self.push(class, block);
        if !self.chunks.counts() {
            return;
        }
        self.chunks.release(block, size_of_class(class));
        if self.chunks.are_many_idle() {
            self.give_back();
        }
    }

    /// Each store leaves the arena whole: a block is in a list only when it points to the rest of it.
    fn push(&self, class: usize, block: usize) {
        let Some(list) = self.free.get(class) else { return };
        // SAFETY: the block is nobody's, and holds a word.
        unsafe { word(block).write(list.load(Ordering::Relaxed)) };
        list.store(block, Ordering::Release);
    }

    /// Fresh memory, used from now on.
    fn cut(&self, size: usize) -> Option<usize> {
        let (start, end) = (self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        if end.saturating_sub(start) >= size {
            self.chunks.hold(start, size);
            self.start.store(start.wrapping_add(size), Ordering::Release);
            return Some(start);
        }
        // What is not given back may lie across pages.
        let missing = size.saturating_sub(end.saturating_sub(start)).div_ceil(PAGE);
        if !self.chunks.counts() && self.chunks.take_at(&self.pages, end, missing) {
            self.end.store(end.wrapping_add(missing.wrapping_mul(PAGE)), Ordering::Release);
            return self.cut(size);
        }
        let count = size.div_ceil(PAGE);
        if let Some(pages) = self.chunks.take(&self.pages, count) {
            self.chunks.hold(pages, size);
            self.go_on_at(pages.wrapping_add(size), pages.wrapping_add(count.wrapping_mul(PAGE)));
            return Some(pages);
        }
        let rest = self.chunks.map(&self.pages, count)?;
        self.go_on_at(rest, rest.next_multiple_of(PAGE));
        self.cut(size)
    }

    /// Cuts from another place.
    fn go_on_at(&self, start: usize, end: usize) {
        let (rest, rest_end) = (self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        // In this order: at no moment does the rest seem to be more than it is.
        self.end.store(0, Ordering::Release);
        self.start.store(start, Ordering::Release);
        self.end.store(end, Ordering::Release);
        self.keep_rest(rest, rest_end);
    }

    /// Makes pages of which no block is used fresh again. What of a block lies in another page is lost until that one is idle too.
    #[cold]
    fn give_back(&self) {
        self.chunks.mark_idle(self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        for (class, list) in self.free.iter().enumerate() {
            let mut link = list;
            loop {
                let block = link.load(Ordering::Relaxed);
                if block == 0 {
                    break;
                }
                // SAFETY: a free block, which begins with the address of the next one.
                let next = unsafe { &*word(block).cast::<AtomicUsize>() };
                if self.chunks.leaves(block, size_of_class(class)) {
                    link.store(next.load(Ordering::Relaxed), Ordering::Release);
                } else {
                    link = next;
                }
            }
        }
        self.chunks.give_back(&self.pages);
    }

    /// Makes free blocks of what was left of a page.
    fn keep_rest(&self, mut start: usize, end: usize) {
        while end.saturating_sub(start) >= STEP {
            let left = end - start;
            let above = class_of(left).unwrap_or(CLASSES - 1);
            let class = if size_of_class(above) > left { above.saturating_sub(1) } else { above };
            self.push(class, start);
            start = start.wrapping_add(size_of_class(class));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtld_link::fallible::try_push;
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    /// Pages from the system's allocator, each mapping known.
    #[derive(Default)]
    struct Mapped(RefCell<BTreeMap<usize, usize>>, RefCell<Vec<(usize, usize)>>);

    impl Pages for Mapped {
        fn map(&self, size: usize) -> Option<usize> {
            let layout = Layout::from_size_align(size, PAGE).unwrap();
            // SAFETY: the layout is not empty.
            let start = unsafe { std::alloc::alloc_zeroed(layout) }.expose_provenance();
            assert!(self.0.borrow_mut().insert(start, size).is_none());
            Some(start)
        }

        fn prepare(&self, start: usize, size: usize) {
            let mapped = self.0.borrow();
            let (&first, &length) = mapped.range(..=start).next_back().unwrap();
            assert!(start.is_multiple_of(PAGE) && size.is_multiple_of(PAGE) && start + size <= first + length);
            try_push(&mut self.1.borrow_mut(), (start, size)).unwrap();
        }

        unsafe fn unmap(&self, start: usize, size: usize) {
            assert_eq!(self.0.borrow_mut().remove(&start), Some(size), "the whole of one mapping");
            let layout = Layout::from_size_align(size, PAGE).unwrap();
            // SAFETY: map allocated it with this layout.
            unsafe { std::alloc::dealloc(core::ptr::with_exposed_provenance_mut(start), layout) };
        }

        unsafe fn clear(&self, start: usize, size: usize) {
            let mapped = self.0.borrow();
            let (&first, &length) = mapped.range(..=start).next_back().unwrap();
            assert!(start.is_multiple_of(PAGE) && size.is_multiple_of(PAGE) && start + size <= first + length);
            // SAFETY: a part of what map allocated.
            unsafe { word(start).cast::<u8>().write_bytes(0, size) };
        }
    }

    /// Whether a page was made.
    fn is_made(arena: &Arena<Mapped>, page: usize) -> bool {
        arena.pages.1.borrow().iter().any(|&(start, size)| (start..start + size).contains(&page))
    }

    #[test]
    fn pages_are_made_before_they_are_used() {
        let arena = Arena::new(Mapped::default());
        let mut seed = 7;
        let mut last = 0;
        for round in 0..3000_usize {
            let size = [24, 300, 1300, 9000, 33_000, 100][round % 6] + next(&mut seed) % 700;
            let (start, _) = arena.allocate(Layout::from_size_align(size, 8).unwrap()).unwrap();
            for page in start / PAGE..=(start + size - 1) / PAGE {
                assert!(is_made(&arena, page * PAGE), "round {round}");
                last = page;
            }
        }
        assert!(last > 0);
        let made = arena.pages.1.borrow();
        let all: usize = made.iter().map(|&(_, size)| size).sum();
        let mut pages: Vec<_> = made.iter().flat_map(|&(start, size)| (start..start + size).step_by(PAGE)).collect();
        pages.sort_unstable();
        pages.dedup();
        let chunks = arena.pages.0.borrow().len();
        // Where the rest of a chunk is used after the next one was begun.
        assert!(all - pages.len() * PAGE <= chunks * (16 << 10), "pages twice: {all} {}", pages.len() * PAGE);
        let used = arena.chunks.cut() * PAGE;
        assert!(all <= used + (chunks + 1) * (32 << 10), "{all} {used}");
    }

    #[test]
    fn pages_are_left_to_their_faults_when_that_is_asked_for() {
        let arena = Arena::new(Mapped::default());
        arena.settle();
        arena.allocate(Layout::from_size_align(200_000, 8).unwrap()).unwrap();
        assert!(arena.pages.1.borrow().is_empty());
        let arena = Arena::new(Mapped::default());
        arena.stop_making();
        for _ in 0..20 {
            arena.allocate(Layout::from_size_align(200_000, 8).unwrap()).unwrap();
        }
        assert!(arena.pages.1.borrow().is_empty());
    }

    #[test]
    fn classes_hold_their_sizes_and_waste_a_ninth_at_most() {
        let mut before = 0;
        for class in 0..CLASSES {
            let size = size_of_class(class);
            assert!(size > before && size.is_multiple_of(STEP));
            assert_eq!(class_of(before + 1), Some(class));
            assert_eq!(class_of(size), Some(class));
            assert!(before == 0 || before < SMALL || size * 8 <= before * 9, "{before} {size}");
            before = size;
        }
        assert_eq!((before, class_of(LARGEST + 1)), (LARGEST, None));
    }

    /// A number from a fixed sequence (xorshift).
    fn next(seed: &mut u64) -> usize {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed as usize
    }

    #[test]
    fn blocks_do_not_overlap_are_aligned_and_zero_when_said_so() {
        let arena = Arena::new(Mapped::default());
        let mut live: Vec<(usize, Layout, u8)> = Vec::new();
        let mut seed = 1;
        for round in 0..50_000_u32 {
            if round == 10_000 {
                arena.settle();
            }
            if live.len() > 300 || !live.is_empty() && next(&mut seed).is_multiple_of(3) {
                let (address, layout, mark) = live.swap_remove(next(&mut seed) % live.len());
                // SAFETY: the memory is live, and was filled below.
                let bytes = unsafe { core::slice::from_raw_parts(word(address).cast::<u8>(), layout.size()) };
                assert!(bytes.iter().all(|&byte| byte == mark), "{layout:?} was written by somebody else");
                // SAFETY: allocated below with this layout.
                unsafe { arena.free(address, layout) };
                continue;
            }
            let bound = 1 << (3 + next(&mut seed) % 17);
            let size = next(&mut seed) % bound;
            let align = 1 << (next(&mut seed) % 13);
            let layout = Layout::from_size_align(size, align).unwrap();
            let (address, is_zero) = arena.allocate(layout).unwrap();
            assert!(address.is_multiple_of(align));
            // SAFETY: fresh memory of this size.
            let bytes = unsafe { core::slice::from_raw_parts_mut(word(address).cast::<u8>(), size) };
            assert!(!is_zero || bytes.iter().all(|&byte| byte == 0));
            bytes.fill(round as u8);
            try_push(&mut live, (address, layout, round as u8)).unwrap();
        }
    }

    #[test]
    fn what_comes_and_goes_needs_no_more_pages() {
        let arena = Arena::new(Mapped::default());
        let mut before = None;
        for round in 0..100 {
            let layouts = (0..200).map(|n| Layout::from_size_align(n * n * 9 + 1, 8 << (n % 5)).unwrap());
            let blocks: Vec<_> = layouts.map(|layout| (arena.allocate(layout).unwrap().0, layout)).collect();
            let mapped: usize = arena.pages.0.borrow().values().sum();
            assert!(before.is_none_or(|before| before == mapped), "round {round}: {before:?} {mapped}");
            before = Some(mapped);
            for (address, layout) in blocks {
                // SAFETY: allocated a moment ago.
                unsafe { arena.free(address, layout) };
            }
        }
    }

    /// As many pages as are cut after a number of peaks, each of blocks of another size, beside blocks that stay.
    fn cut_after_peaks(settled: bool) -> usize {
        let arena = Arena::new(Mapped::default());
        if settled {
            arena.settle();
        }
        let mut seed = 1;
        let mut stays = Vec::new();
        for round in 0..40 {
            let mut comes = Vec::new();
            for number in 0..200_usize {
                let size = [24, 90, 300, 1000, 2000, 5000, 20_000][round % 7] + next(&mut seed) % 16;
                let layout = Layout::from_size_align(size, 8).unwrap();
                let (address, is_zero) = arena.allocate(layout).unwrap();
                // SAFETY: fresh memory of this size.
                let bytes = unsafe { core::slice::from_raw_parts_mut(word(address).cast::<u8>(), size) };
                assert!(!is_zero || bytes.iter().all(|&byte| byte == 0));
                bytes.fill(round as u8);
                let list = if round < 7 && number.is_multiple_of(50) { &mut stays } else { &mut comes };
                try_push(list, (address, layout, round as u8)).unwrap();
            }
            for (address, layout, mark) in comes.iter().chain(&stays) {
                // SAFETY: filled above.
                let bytes = unsafe { core::slice::from_raw_parts(word(*address).cast::<u8>(), layout.size()) };
                assert!(bytes.iter().all(|byte| byte == mark), "{layout:?} was written by somebody else");
            }
            for (address, layout, _) in comes {
                // SAFETY: allocated above.
                unsafe { arena.free(address, layout) };
            }
        }
        arena.chunks.cut()
    }

    #[test]
    fn pages_without_a_used_block_are_given_back() {
        let (kept, settled) = (cut_after_peaks(false), cut_after_peaks(true));
        // What stays are 4 blocks of each of 7 sizes, 44 pages of them; 200 blocks of 20,000 bytes alone are 1000.
        assert!(kept > 1000 && settled < 90, "{kept} and {settled} pages");
    }
}
