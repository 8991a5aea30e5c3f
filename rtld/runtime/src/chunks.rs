//! Pages in chunks, and what is known of each page: fresh, or cut into blocks of which so many are used. Owns the accounts, which
//! stand at the start of each chunk; what blocks there are is the caller's business.
//!
//! Whole after every store, as `arena` is: a page counts as used before anything of it is given out and until everything has
//! come back, so that a copy of the process that is made in the middle has lost pages at the most.

use core::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};

/// Where pages come from.
pub trait Pages {
    /// Fresh zero pages; None if there are none.
    fn map(&self, size: usize) -> Option<usize>;

    /// These pages of what `map` gave are going to be used. A hint.
    fn prepare(&self, _start: usize, _size: usize) {}

    /// Gives back what `map` gave.
    ///
    /// # Safety
    /// Nothing in it may be used any more.
    unsafe fn unmap(&self, start: usize, size: usize);

    /// Makes pages of what `map` gave zero, which cost nothing until they are used again.
    ///
    /// # Safety
    /// Nothing in them may be used any more.
    unsafe fn clear(&self, start: usize, size: usize);
}

pub(crate) const PAGE: usize = 4096;
/// What is mapped at a time at first: pages of it cost something only once they are used.
pub const FIRST: usize = 1 << 20;
/// So much of a chunk is made when it is mapped: what the smallest program's start fills.
pub const MADE: usize = 32 << 10;
/// So much is made at a time behind that, until the start is over.
const STEP: usize = 16 << 10;
/// In place of where that ends.
const NO_MORE: usize = usize::MAX;
/// So many chunks are of one size, the next ones are twice as large.
const ALIKE: usize = 2;
const MOST: usize = 24;
/// So many pages without a used block may stay with what was cut from them, and one more for so many that were cut: each time they
/// are given back, all free blocks are looked at.
const MAY_IDLE: usize = 4;
const SHARE: usize = 32;

/// A page that is zero and not cut. What a fresh mapping says of each page.
const FRESH: u16 = 0;
/// A page that was cut, and of which no block is used. Each one that is counts one more.
const IDLE: u16 = 1;
/// A page that becomes fresh.
const LEAVING: u16 = u16::MAX;
/// A page that is not counted, and never becomes fresh.
const KEPT: u16 = u16::MAX - 1;

/// Pages that were mapped together. It begins with an account for each.
#[derive(Debug)]
struct Chunk {
    /// Zero where there is none.
    start: AtomicUsize,
    size: AtomicUsize,
    /// No page before this one is fresh.
    next: AtomicUsize,
}

/// All chunks.
#[derive(Debug)]
pub(crate) struct Chunks {
    table: [Chunk; MOST],
    /// How many pages are idle. A hint, as is the next one: in the child of a fork they may be wrong.
    idle: AtomicUsize,
    /// How many are not fresh.
    cut: AtomicUsize,
    /// Whether the blocks of pages that are cut are counted.
    counts: AtomicBool,
    /// Where what was made last ends, or [`NO_MORE`]; a hint.
    made: AtomicUsize,
}

impl Chunk {
    const fn none() -> Chunk {
        Chunk { start: AtomicUsize::new(0), size: AtomicUsize::new(0), next: AtomicUsize::new(0) }
    }

    fn pages(&self) -> usize {
        self.size.load(Ordering::Relaxed) / PAGE
    }

    /// The page that an address lies in, if it lies here.
    fn page_of(&self, address: usize) -> Option<usize> {
        let distance = address.checked_sub(self.start.load(Ordering::Relaxed))?;
        (distance < self.size.load(Ordering::Relaxed)).then_some(distance / PAGE)
    }

    fn address(&self, page: usize) -> usize {
        self.start.load(Ordering::Relaxed).wrapping_add(page.wrapping_mul(PAGE))
    }

    /// What is known of a page, which must be one of the chunk's.
    fn account(&self, page: usize) -> &AtomicU16 {
        let account = self.start.load(Ordering::Relaxed).wrapping_add(page.wrapping_mul(size_of::<AtomicU16>()));
        // SAFETY: the chunk begins with one for each of its pages, and is never unmapped.
        unsafe { &*core::ptr::with_exposed_provenance(account) }
    }

    fn state(&self, page: usize) -> u16 {
        self.account(page).load(Ordering::Relaxed)
    }

    fn set(&self, page: usize, state: u16) {
        self.account(page).store(state, Ordering::Release);
    }

    /// The first of so many fresh pages beside each other.
    fn find(&self, count: usize) -> Option<usize> {
        let mut run = 0;
        for page in self.next.load(Ordering::Relaxed)..self.pages() {
            run = if self.state(page) == FRESH { run + 1 } else { 0 };
            if run == count {
                return Some(page + 1 - count);
            }
        }
        None
    }
}

fn add(counter: &AtomicUsize, more: usize) {
    counter.store(counter.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
}

fn subtract(counter: &AtomicUsize, less: usize) {
    counter.store(counter.load(Ordering::Relaxed).saturating_sub(less), Ordering::Relaxed);
}

impl Chunks {
    pub(crate) const fn new() -> Chunks {
        let (idle, cut, counts) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        Chunks { table: [const { Chunk::none() }; MOST], idle, cut, counts, made: AtomicUsize::new(0) }
    }

    /// From now on pages are given back, but for those that were cut before.
    pub(crate) fn count(&self) {
        self.counts.store(true, Ordering::Relaxed);
    }

    /// From now on pages are left to their faults.
    pub(crate) fn stop_making(&self) {
        self.made.store(NO_MORE, Ordering::Relaxed);
    }

    /// Whether blocks are counted.
    #[inline]
    pub(crate) fn counts(&self) -> bool {
        self.counts.load(Ordering::Relaxed)
    }

    fn iter(&self) -> impl Iterator<Item = &Chunk> {
        self.table.iter().take_while(|chunk| chunk.start.load(Ordering::Acquire) != 0)
    }

    /// So many fresh pages beside each other, which are cut now.
    pub(crate) fn take(&self, pages: &impl Pages, count: usize) -> Option<usize> {
        let (chunk, first) = self.iter().find_map(|chunk| Some((chunk, chunk.find(count)?)))?;
        self.cut_pages(pages, chunk, first, count);
        Some(chunk.address(first))
    }

    /// Takes so many pages from an address on, if they are fresh ones.
    pub(crate) fn take_at(&self, pages: &impl Pages, address: usize, count: usize) -> bool {
        let Some((chunk, first)) = self.find(address) else { return false };
        let are_fresh = first + count <= chunk.pages() && (first..first + count).all(|page| chunk.state(page) == FRESH);
        if are_fresh {
            self.cut_pages(pages, chunk, first, count);
        }
        are_fresh
    }

    fn cut_pages(&self, pages: &impl Pages, chunk: &Chunk, first: usize, count: usize) {
        if first == chunk.next.load(Ordering::Relaxed) {
            chunk.next.store(first + count, Ordering::Relaxed);
        }
        let counts = self.counts();
        if !counts {
            self.make(pages, chunk, first, count);
        }
        for page in first..first + count {
            chunk.set(page, if counts { IDLE } else { KEPT });
        }
        add(&self.idle, if counts { count } else { 0 });
        add(&self.cut, count);
    }

    /// Makes pages that are cut, with those behind them, unless they are made.
    fn make(&self, pages: &impl Pages, chunk: &Chunk, first: usize, count: usize) {
        let (start, end) = (chunk.address(first), chunk.address(first + count));
        let made = self.made.load(Ordering::Relaxed);
        if made == NO_MORE {
            return;
        }
        let is_behind = made > chunk.address(0) && made <= chunk.address(chunk.pages()) && start <= made;
        if is_behind && end <= made {
            return;
        }
        let from = if is_behind { made } else { start };
        let until = end.max(from.saturating_add(STEP)).min(chunk.address(chunk.pages()));
        pages.prepare(from, until.saturating_sub(from));
        self.made.store(until, Ordering::Relaxed);
    }

    /// The page of an address.
    fn find(&self, address: usize) -> Option<(&Chunk, usize)> {
        self.iter().find_map(|chunk| Some((chunk, chunk.page_of(address)?)))
    }

    /// Maps a chunk with room for so many pages. Gives the first byte after its accounts, which may be cut up to the page's end.
    pub(crate) fn map(&self, pages: &impl Pages, count: usize) -> Option<usize> {
        let (index, chunk) =
            self.table.iter().enumerate().find(|(_, chunk)| chunk.start.load(Ordering::Relaxed) == 0)?;
        let usual = FIRST << (index / ALIKE);
        // One page has the accounts of two thousand.
        let needed = count.checked_add(1 + count / (PAGE / 4))?.checked_mul(PAGE)?.checked_next_power_of_two()?;
        let size = usual.max(needed);
        let accounts = size / PAGE * size_of::<AtomicU16>();
        let start = pages.map(size)?;
        chunk.size.store(size, Ordering::Relaxed);
        chunk.next.store(0, Ordering::Relaxed);
        chunk.start.store(start, Ordering::Release);
        if !self.counts() && self.made.load(Ordering::Relaxed) != NO_MORE {
            pages.prepare(start, MADE);
            self.made.store(start.wrapping_add(MADE), Ordering::Relaxed);
        }
        let used = accounts.div_ceil(PAGE);
        for page in 0..used {
            chunk.set(page, KEPT);
        }
        add(&self.cut, used);
        Some(start.wrapping_add(accounts))
    }

    /// Does something with the account of each page that a block touches.
    fn each(&self, block: usize, size: usize, mut work: impl FnMut(&Chunk, usize)) {
        let Some((chunk, first)) = self.find(block) else { return };
        let last = chunk.page_of(block.wrapping_add(size.wrapping_sub(1))).unwrap_or(first);
        for page in first..=last {
            work(chunk, page);
        }
    }

    /// A block is used from now on.
    #[inline]
    pub(crate) fn hold(&self, block: usize, size: usize) {
        if self.counts() {
            self.hold_counted(block, size);
        }
    }

    #[inline(never)]
    fn hold_counted(&self, block: usize, size: usize) {
        self.each(block, size, |chunk, page| {
            let state = chunk.state(page);
            if state < KEPT {
                chunk.set(page, state + 1);
            }
            if state == IDLE {
                subtract(&self.idle, 1);
            }
        });
    }

    /// A block is free again, and in a list; called where blocks are counted.
    pub(crate) fn release(&self, block: usize, size: usize) {
        self.each(block, size, |chunk, page| {
            let state = chunk.state(page);
            if state > IDLE && state < KEPT {
                chunk.set(page, state - 1);
            }
            if state == IDLE + 1 {
                add(&self.idle, 1);
            }
        });
    }

    /// Whether so many pages are idle that they should be given back.
    pub(crate) fn are_many_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed) > MAY_IDLE + self.cut.load(Ordering::Relaxed) / SHARE
    }

    /// Marks all idle pages but those with something from `start` to `end`; the caller then takes their blocks out of its lists.
    pub(crate) fn mark_idle(&self, start: usize, end: usize) {
        for chunk in self.iter() {
            for page in (0..chunk.pages()).filter(|&page| chunk.state(page) == IDLE) {
                let address = chunk.address(page);
                if end <= address || start >= address.wrapping_add(PAGE) {
                    chunk.set(page, LEAVING);
                }
            }
        }
    }

    /// Whether a block has something of a marked page.
    pub(crate) fn leaves(&self, block: usize, size: usize) -> bool {
        let mut leaves = false;
        self.each(block, size, |chunk, page| leaves |= chunk.state(page) == LEAVING);
        leaves
    }

    /// Makes the marked pages fresh.
    pub(crate) fn give_back(&self, pages: &impl Pages) {
        let (mut idle, mut cut) = (0, 0);
        for chunk in self.iter() {
            let mut page = 0;
            while page < chunk.pages() {
                let first = page;
                while page < chunk.pages() && chunk.state(page) == LEAVING {
                    page += 1;
                }
                if first == page {
                    let state = chunk.state(page);
                    idle += usize::from(state == IDLE);
                    cut += usize::from(state != FRESH);
                    page += 1;
                    continue;
                }
                // SAFETY: no block in these pages is used, and none is in a list.
                unsafe { pages.clear(chunk.address(first), (page - first) * PAGE) };
                (first..page).for_each(|page| chunk.set(page, FRESH));
            }
            chunk.next.store(0, Ordering::Relaxed);
        }
        self.idle.store(idle, Ordering::Relaxed);
        self.cut.store(cut, Ordering::Relaxed);
    }

    /// How many pages are not fresh.
    #[cfg(test)]
    pub(crate) fn cut(&self) -> usize {
        self.cut.load(Ordering::Relaxed)
    }
}
