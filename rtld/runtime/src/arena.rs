//! Memory in blocks of fixed sizes, cut from pages. Owns the free blocks and what is left of the last chunk.
//!
//! It is whole after every single store: a copy of the process that is made in the middle of a call (a fork in another thread)
//! finds an arena that works, and has lost one block or chunk at the most. That is why it keeps lists of blocks of one size
//! and never joins neighbours. The caller serialises calls and knows the layout of what it gives back, so blocks
//! have no headers.

use core::alloc::Layout;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Where pages come from.
pub trait Pages {
    /// Fresh zero pages; None if there are none.
    fn map(&self, size: usize) -> Option<usize>;

    /// Gives back what `map` gave.
    ///
    /// # Safety
    /// Nothing in it may be used any more.
    unsafe fn unmap(&self, start: usize, size: usize);
}

/// The least size and alignment of a block.
const STEP: usize = 16;
/// Sizes up to here go up in steps of STEP, above it in four steps to each power of two.
const SMALL: usize = 128;
/// What is larger has a mapping of its own, which is given back.
const LARGEST: usize = 256 << 10;
const CLASSES: usize = SMALL / STEP + 4 * (LARGEST / SMALL).ilog2() as usize;
/// What is mapped at a time: pages of it cost something only once they are used.
const CHUNK: usize = 256 << 10;
/// Blocks above this size are mapped one by one.
const CUT: usize = 16 << 10;
const PAGE: usize = 4096;

/// The arena. All zero is an empty one.
#[derive(Debug)]
pub struct Arena<P> {
    /// By class: the first free block, which holds the address of the next one.
    free: [AtomicUsize; CLASSES],
    /// The unused rest of the last chunk.
    start: AtomicUsize,
    end: AtomicUsize,
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
    // The power of two below, and which quarter of the way to the next one.
    let power = (size - 1).ilog2();
    let quarter = ((size - 1) >> (power - 2)) & 3;
    Some(SMALL / STEP + 4 * (power - SMALL.ilog2()) as usize + quarter)
}

/// The size of a class's blocks.
fn size_of_class(class: usize) -> usize {
    match class.checked_sub(SMALL / STEP) {
        None => (class + 1) * STEP,
        Some(above) => (SMALL << (above / 4)) / 4 * (5 + above % 4),
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
            pages,
        }
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
            Some(class) => self.push(class, block),
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
        let list = self.free.get(class)?;
        let first = list.load(Ordering::Relaxed);
        if first != 0 {
            // SAFETY: a free block, which holds the address of the next one.
            let next = unsafe { word(first).read() };
            list.store(next, Ordering::Release);
            return Some((first, false));
        }
        self.cut(size_of_class(class)).map(|block| (block, true))
    }

    /// Each store leaves the arena whole: a block is in a list only when it points to the rest of it.
    fn push(&self, class: usize, block: usize) {
        let Some(list) = self.free.get(class) else { return };
        // SAFETY: the block is nobody's, and holds a word.
        unsafe { word(block).write(list.load(Ordering::Relaxed)) };
        list.store(block, Ordering::Release);
    }

    /// Fresh memory.
    fn cut(&self, size: usize) -> Option<usize> {
        if size > CUT {
            return self.pages.map(size.checked_next_multiple_of(PAGE)?);
        }
        let start = self.start.load(Ordering::Relaxed);
        if self.end.load(Ordering::Relaxed).saturating_sub(start) >= size {
            self.start.store(start.wrapping_add(size), Ordering::Release);
            return Some(start);
        }
        let chunk = self.pages.map(CHUNK)?;
        let (rest, rest_end) = (start, self.end.load(Ordering::Relaxed));
        // In this order: at no moment does the rest seem to be more than it is.
        self.end.store(0, Ordering::Release);
        self.start.store(chunk.wrapping_add(size), Ordering::Release);
        self.end.store(chunk.wrapping_add(CHUNK), Ordering::Release);
        self.keep_rest(rest, rest_end);
        Some(chunk)
    }

    /// Makes free blocks of what was left of a chunk.
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
    struct Mapped(RefCell<BTreeMap<usize, usize>>);

    impl Pages for Mapped {
        fn map(&self, size: usize) -> Option<usize> {
            let layout = Layout::from_size_align(size, PAGE).unwrap();
            // SAFETY: the layout is not empty.
            let start = unsafe { std::alloc::alloc_zeroed(layout) }.expose_provenance();
            assert!(self.0.borrow_mut().insert(start, size).is_none());
            Some(start)
        }

        unsafe fn unmap(&self, start: usize, size: usize) {
            assert_eq!(self.0.borrow_mut().remove(&start), Some(size), "the whole of one mapping");
            let layout = Layout::from_size_align(size, PAGE).unwrap();
            // SAFETY: map allocated it with this layout.
            unsafe { std::alloc::dealloc(core::ptr::with_exposed_provenance_mut(start), layout) };
        }
    }

    #[test]
    fn classes_hold_their_sizes_and_waste_a_fifth_at_most() {
        let mut before = 0;
        for class in 0..CLASSES {
            let size = size_of_class(class);
            assert!(size > before && size.is_multiple_of(STEP));
            assert_eq!(class_of(before + 1), Some(class));
            assert_eq!(class_of(size), Some(class));
            assert!(before == 0 || before < SMALL || size * 4 <= before * 5, "{before} {size}");
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
}
