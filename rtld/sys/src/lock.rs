//! A mutual-exclusion word on futex(2). It knows nothing of signals: who may hold it, and wait for it where, is decided
//! elsewhere.

use crate::call::call;
use core::sync::atomic::{AtomicU32, Ordering};
use linux_raw_sys::general as kernel;

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;
/// Bits of the word below the tag.
const TAG_SHIFT: u32 = 2;

fn held(tag: u32) -> u32 {
    tag << TAG_SHIFT | HELD
}

/// A lock without an owner or a queue of its own. Its end wakes all who wait: none of them is bound to come and take it, so
/// none may be relied on to wake the next one.
///
/// Who takes it leaves a *tag* in the word, of 30 bits. A lock with another tag than those that its users have now was left
/// behind by somebody who will not come back for it.
#[derive(Debug, Default)]
pub struct Futex(AtomicU32);

impl Futex {
    /// A free lock.
    pub const fn new() -> Futex {
        Futex(AtomicU32::new(FREE))
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_acquire(&self, tag: u32) -> bool {
        self.0.compare_exchange(FREE, held(tag), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Sleeps while another thread holds the lock, without taking it. May return for no reason: try again.
    pub fn wait(&self) {
        let seen = self.0.load(Ordering::Relaxed);
        let contended = seen | CONTENDED;
        let noted = |word: u32| self.0.compare_exchange(word, contended, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if seen != FREE && (seen == contended || noted(seen)) {
            wait_while(&self.0, contended);
        }
    }

    /// Frees the lock if it is held with another tag than this; whether it was.
    pub fn free_if_left(&self, tag: u32) -> bool {
        let seen = self.0.load(Ordering::Acquire);
        seen != FREE
            && (seen ^ held(tag)) >> TAG_SHIFT != 0
            && self.0.compare_exchange(seen, FREE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Gives the lock back. Only its holder may.
    #[inline]
    pub fn release(&self) {
        if self.0.swap(FREE, Ordering::Release) & CONTENDED != 0 {
            wake_all(&self.0);
        }
    }
}

/// Sleeps while a word has this value. May return for no reason: look again.
pub fn wait_while(word: &AtomicU32, value: u32) {
    let operation = (kernel::FUTEX_WAIT | kernel::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the word lives as long as the borrow; FUTEX_WAIT reads it.
    let _ = unsafe { call(kernel::__NR_futex, [word.as_ptr() as usize, operation, value as usize, 0, 0, 0]) };
}

/// Wakes all that sleep on a word.
pub fn wake_all(word: &AtomicU32) {
    let operation = (kernel::FUTEX_WAKE | kernel::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the word lives as long as the borrow; FUTEX_WAKE writes nothing.
    let _ = unsafe { call(kernel::__NR_futex, [word.as_ptr() as usize, operation, i32::MAX as usize, 0, 0, 0]) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_another_tag_holds_is_freed() {
        let lock = Futex::new();
        assert!(!lock.free_if_left(1), "it is free");
        assert!(lock.try_acquire(1) && !lock.try_acquire(1));
        assert!(!lock.free_if_left(1), "its holder is alive");
        assert!(!lock.try_acquire(2) && lock.free_if_left(2));
        assert!(lock.try_acquire(2));
        lock.release();
        assert!(lock.try_acquire(3));
    }
}
