//! Waiting for an object that another thread initialises. Owns the protocol by which no end is missed, and which makes no system
//! call where nobody waits; who waits for whom is `initialise`'s.

use crate::atomics::{Machine, Memory, Word};
use core::sync::atomic::{AtomicU32, Ordering};

/// How many threads wait for any object.
#[derive(Debug)]
pub struct Waiters<M: Memory = Machine> {
    pub(crate) count: M::U32,
}

impl Waiters {
    /// Nobody.
    pub const fn new() -> Waiters {
        Waiters { count: AtomicU32::new(0) }
    }
}

impl<M: Memory> Waiters<M> {
    /// Says how far an object is now, and wakes those who wait for it.
    pub fn tell(&self, word: &M::U32, value: u32) {
        word.store(value, Ordering::SeqCst);
        // A thread that counts itself after this look finds the word changed when it goes to sleep.
        if self.count.load(Ordering::SeqCst) != 0 {
            M::wake_all(word);
        }
    }

    /// Waits until an object that was seen at `seen` is somewhere that ends the wait; gives where.
    pub fn wait(&self, word: &M::U32, mut seen: u32, goes_on: impl Fn(u32) -> bool) -> u32 {
        self.count.fetch_add(1, Ordering::SeqCst);
        while goes_on(seen) {
            M::wait_while(word, seen);
            seen = word.load(Ordering::Acquire);
        }
        self.count.fetch_sub(1, Ordering::SeqCst);
        seen
    }
}
