//! The lock around changes of actions: taken inside a section, waited for outside, and never held while anything is waited for.
//! Owns who has it.
//!
//! sigaction(2) may be called in any handler, also in one that sections do not hold, which interrupts a change of its own thread.
//! Such a thread has the lock already and goes on: the table is whole at any time. In the child of a fork the owner may not be
//! there; so the word says which process it was taken in (`lineage`).

use crate::lineage;
use crate::section;
use crate::state::ThreadState;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use rtld_sys::{lock, thread};

/// Thread pointers are aligned to 64 bytes: the bits below are the process's number.
const NUMBER: usize = 63;

/// The lock.
pub(crate) struct ChangeLock {
    /// The thread pointer of the owner and the number of its process; 0 for nobody.
    owner: AtomicUsize,
    /// How many threads may be asleep.
    waiting: AtomicU32,
    /// Counts ends that somebody waited for.
    ends: AtomicU32,
}

impl ChangeLock {
    /// A free lock.
    pub(crate) const fn new() -> ChangeLock {
        ChangeLock { owner: AtomicUsize::new(0), waiting: AtomicU32::new(0), ends: AtomicU32::new(0) }
    }

    /// Does something under the lock, inside a section.
    pub(crate) fn with<R>(&self, state: &ThreadState, work: impl FnOnce() -> R) -> R {
        let took = self.enter(state);
        let result = work();
        if took {
            self.release();
        }
        section::leave(state);
        result
    }

    /// Enters a section in which the calling thread owns the lock; whether this call took it.
    fn enter(&self, state: &ThreadState) -> bool {
        loop {
            // SAFETY: threads that use sections have thread pointers.
            let me = unsafe { thread::pointer() } | lineage::known() as usize & NUMBER;
            section::enter(state);
            match self.owner.compare_exchange(0, me, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(owner) if owner == me => return false,
                Err(_) => section::leave(state),
            }
            if !self.free_if_left() {
                self.wait();
            }
        }
    }

    fn wait(&self) {
        let seen = self.ends.load(Ordering::SeqCst);
        // A handler that leaves this function for good leaves the count too high, which costs wakes and nothing else.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        if self.owner.load(Ordering::SeqCst) != 0 {
            lock::wait_while(&self.ends, seen);
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    fn release(&self) {
        self.owner.store(0, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) != 0 {
            self.ends.fetch_add(1, Ordering::SeqCst);
            lock::wake_all(&self.ends);
        }
    }

    /// Frees the lock if its owner stayed behind in the parent of a fork; whether it did.
    fn free_if_left(&self) -> bool {
        let current = lineage::current() as usize & NUMBER;
        let owner = self.owner.load(Ordering::SeqCst);
        let left = owner != 0 && owner & NUMBER != current;
        if left {
            self.reset();
        }
        left
    }

    /// In the child of a fork, which has one thread: nobody has the lock.
    pub(crate) fn reset(&self) {
        self.waiting.store(0, Ordering::SeqCst);
        self.owner.store(0, Ordering::SeqCst);
    }
}
