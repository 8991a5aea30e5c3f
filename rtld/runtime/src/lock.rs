//! The loader's locks, and where a thread may wait for one.
//!
//! What a lock protects is touched inside sections only, so no handler of its holder's finds it held. A *short* lock is held
//! for a bounded time by a thread that neither sleeps nor calls foreign code; so waiting for it inside a section is bounded
//! too. Any other lock is waited for outside sections: a thread that sleeps must answer signals.
//!
//! A lock says which process it was taken in (`sigblock::lineage`). In the child of a fork one that was taken in the parent is
//! free: its holder is not here. What it protects must be whole at any moment, or be put right (`fork`).

use rtld_sys::lock::Futex;
use sigblock::{ThreadState, callback, lineage, section};

/// A lock.
#[derive(Debug, Default)]
pub struct Lock {
    futex: Futex,
}

impl Lock {
    /// A free lock.
    pub const fn new() -> Lock {
        Lock { futex: Futex::new() }
    }

    /// Does something short under the lock, in a section.
    pub fn briefly<R>(&self, work: impl FnOnce() -> R) -> R {
        section::inside(|| {
            self.take();
            let result = work();
            self.futex.release();
            result
        })
    }

    /// Takes the lock in a section.
    #[inline(never)]
    fn take(&self) {
        while !self.futex.try_acquire(lineage::known()) {
            if !self.free_if_left() {
                self.futex.wait();
            }
        }
    }

    /// Enters a section and takes the lock in it, waiting outside.
    #[inline(never)]
    fn enter(&self, state: &ThreadState) {
        loop {
            section::enter(state);
            if self.futex.try_acquire(lineage::known()) {
                return;
            }
            section::leave(state);
            // Whoever calls from a callback sleeps too.
            callback::suspend(state);
            if !self.free_if_left() {
                self.futex.wait();
            }
        }
    }

    /// Does something under the lock, in a section; waits for the lock outside.
    pub fn with<R>(&self, work: impl FnOnce() -> R) -> R {
        let state = sigblock::current();
        self.enter(state);
        let result = work();
        self.futex.release();
        section::leave(state);
        result
    }

    /// Frees the lock if it was taken in a process that this one is a copy of; whether it was.
    pub fn free_if_left(&self) -> bool {
        self.futex.free_if_left(lineage::current())
    }
}
