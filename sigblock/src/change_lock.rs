//! The lock around changes of actions: taken inside a section, waited for outside, and never held while anything is waited for.
//! Owns who has it.
//!
//! sigaction(2) may be called in any handler, also in one that sections do not hold, which interrupts a change of its own thread.
//! Such a thread has the lock already and goes on: the table is whole at any time. In the child of a fork the owner may not be
//! there.

use crate::section;
use crate::state::ThreadState;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
use rtld_sys::{lock, process, thread};

/// The lock.
pub(crate) struct ChangeLock {
    /// The thread pointer of the owner; 0 for nobody.
    owner: AtomicUsize,
    /// The process, if it has forked; 0 if not.
    process: AtomicI32,
    /// How many threads may be asleep.
    waiting: AtomicU32,
    /// Counts ends that somebody waited for.
    ends: AtomicU32,
}

impl ChangeLock {
    /// A free lock.
    pub(crate) const fn new() -> ChangeLock {
        ChangeLock {
            owner: AtomicUsize::new(0),
            process: AtomicI32::new(0),
            waiting: AtomicU32::new(0),
            ends: AtomicU32::new(0),
        }
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
        // SAFETY: threads that use sections have thread pointers.
        let me = unsafe { thread::pointer() };
        loop {
            section::enter(state);
            match self.owner.compare_exchange(0, me, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(owner) if owner == me => return false,
                Err(_) => section::leave(state),
            }
            if !self.is_left_over() {
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

    /// The process is about to fork.
    pub(crate) fn before_fork(&self) {
        self.process.store(process::id(), Ordering::Relaxed);
    }

    /// Whether the owner stayed behind in the parent of a fork; then the lock is free.
    fn is_left_over(&self) -> bool {
        let known = self.process.load(Ordering::Relaxed);
        let left = known != 0 && known != process::id();
        if left {
            self.reset();
        }
        left
    }

    /// In the child of a fork, which has one thread: nobody has the lock.
    pub(crate) fn reset(&self) {
        self.process.store(0, Ordering::Relaxed);
        self.waiting.store(0, Ordering::SeqCst);
        self.owner.store(0, Ordering::SeqCst);
    }
}
