//! The lock around callbacks of `dl_iterate_phdr`: one thread's at a time, because programs with an old unwinder keep a cache
//! that their callback fills without a lock of its own. Owns who has it.
//!
//! The one word of the lock is its owner, so taking it is one instruction and a handler that iterates finds itself either the
//! owner or not. Who owns it already does not take it again; the iteration that took it gives it back. It is waited for
//! outside sections. Writers never take it, so there is no order to keep.
//!
//! As long as the process has one thread the lock is taken and given back by plain stores, which halves what an iteration
//! costs that ends at the first object.

use crate::atomics::{Machine, Memory, Word};
use crate::fork;
use crate::world::World;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use rtld_sys::thread;
use sigblock::{ThreadState, callback, section};

/// The lock.
#[derive(Debug)]
pub struct IterateLock<M: Memory = Machine> {
    /// The thread pointer of the owner; 0 for nobody.
    pub(crate) owner: M::Address,
    /// How many threads may be asleep.
    pub(crate) waiting: M::U32,
    /// Counts ends that somebody waited for.
    pub(crate) ends: M::U32,
    /// Not 0: there is, or was, a second thread.
    pub(crate) shared: M::U32,
}

impl Default for IterateLock {
    fn default() -> IterateLock {
        IterateLock::new()
    }
}

impl IterateLock {
    /// A free lock.
    pub const fn new() -> IterateLock {
        IterateLock {
            owner: AtomicUsize::new(0),
            waiting: AtomicU32::new(0),
            ends: AtomicU32::new(0),
            shared: AtomicU32::new(0),
        }
    }

    /// Enters a section in which the calling thread owns the lock; whether this call took it.
    pub(crate) fn enter(&self, world: &World, state: &ThreadState) -> bool {
        // SAFETY: threads of this process have thread pointers.
        let me = unsafe { thread::pointer() };
        loop {
            section::enter(state);
            match self.take(me) {
                0 => return true,
                owner if owner == me => return false,
                _ => self.wait_outside(world, state),
            }
        }
    }

    #[cold]
    fn wait_outside(&self, world: &World, state: &ThreadState) {
        section::leave(state);
        fork::notice(world);
        // No callback of this thread's is raised while another thread owns the lock; this says so.
        callback::suspend(state);
        self.wait();
    }
}

impl<M: Memory> IterateLock<M> {
    /// Before there is a second thread. The calling thread does not own the lock.
    pub(crate) fn share(&self) {
        self.shared.store(1, Ordering::Relaxed);
    }

    /// Takes the lock if it is free: the owner before.
    pub(crate) fn take(&self, me: usize) -> usize {
        if self.shared.load(Ordering::Relaxed) != 0 {
            let taken = self.owner.compare_exchange(0, me, Ordering::SeqCst, Ordering::Relaxed);
            return taken.unwrap_or_else(|owner| owner);
        }
        // A handler that comes in between gives back what it takes.
        let owner = self.owner.load(Ordering::Relaxed);
        if owner == 0 {
            self.owner.store(me, Ordering::Relaxed);
        }
        owner
    }

    /// Sleeps while another thread owns the lock. May return for no reason: try again.
    pub(crate) fn wait(&self) {
        let seen = self.ends.load(Ordering::SeqCst);
        // A handler that leaves this function for good leaves the count too high, which costs wakes and nothing else.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        if self.owner.load(Ordering::SeqCst) != 0 {
            M::wait_while(&self.ends, seen);
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Gives the lock back. Only by who took it.
    pub(crate) fn release(&self) {
        if self.shared.load(Ordering::Relaxed) == 0 {
            self.owner.store(0, Ordering::Relaxed);
            return;
        }
        self.owner.store(0, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) != 0 {
            self.ends.fetch_add(1, Ordering::SeqCst);
            M::wake_all(&self.ends);
        }
    }

    /// In the child of a fork: only what the calling thread owns is still owned.
    pub(crate) fn only(&self, me: usize) {
        if self.owner.load(Ordering::Relaxed) != me {
            self.owner.store(0, Ordering::SeqCst);
        }
        self.waiting.store(0, Ordering::SeqCst);
    }
}
