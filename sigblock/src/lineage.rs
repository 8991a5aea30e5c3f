//! Which process this is: the one that a fork copied, or its copy. Owns a page that the kernel clears in the child of a fork
//! (MADV_WIPEONFORK), and a number that a child makes its own when it finds the page cleared.
//!
//! A fork is not announced: a raw clone(2) passes by everything. So what only a living thread can give back is marked with
//! the number of the process that it was taken in; who meets another number knows that nobody is left to give it back. A child
//! that shares its parent's memory (vfork, posix_spawn) sees the page as its parent does, and is no other process here.
//!
//! Linux has it since 4.14. Where it is refused, as some emulators do, a child is taken for its parent.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use rtld_sys::memory;

/// A word of the page: 0 in a child that has not looked. Null until there may be something to lose.
static MARK: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
/// The number.
static NUMBER: AtomicU32 = AtomicU32::new(FIRST);

/// The number of a process before any fork that was found.
pub const FIRST: u32 = 1;

/// From now on the child of a fork is found. Before the process has a second thread.
pub fn watch() {
    if !MARK.load(Ordering::Acquire).is_null() {
        return;
    }
    let Ok(page) = memory::map_wiped_on_fork() else { return };
    let word = core::ptr::with_exposed_provenance_mut::<AtomicU32>(page);
    // SAFETY: a fresh page.
    unsafe { (*word).store(1, Ordering::Release) };
    if MARK.compare_exchange(core::ptr::null_mut(), word, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        // SAFETY: a handler came first; nobody knows of this page.
        let _ = unsafe { memory::unmap(page, memory::WIPED_SIZE) };
    }
}

/// The number as far as it is known without a look at the page: what a living thread of this process takes is marked with it.
#[inline(always)]
pub fn known() -> u32 {
    NUMBER.load(Ordering::Relaxed)
}

/// The number of this process. The first call in a child changes it; the child has one thread then.
#[inline]
pub fn current() -> u32 {
    // SAFETY: null, or a page that is never unmapped.
    if let Some(mark) = unsafe { MARK.load(Ordering::Acquire).as_ref() }
        && mark.load(Ordering::Relaxed) == 0
    {
        // In this order: a handler in between changes it once more, which does no harm.
        NUMBER.fetch_add(1, Ordering::Relaxed);
        mark.store(1, Ordering::Release);
    }
    known()
}
