//! The loader's locks, and where a thread may wait for one.
//!
//! What a lock protects is touched inside sections only, so no handler of its holder's finds it held. A *short* lock is held
//! for a bounded time by a thread that neither sleeps nor calls foreign code; so waiting for it inside a section is bounded
//! too. Any other lock is waited for outside sections: a thread that sleeps must answer signals.
//!
//! Around a fork a thread *keeps* the locks outside a section: what the C library does then may itself have to wait for
//! threads that a signal has stopped. Nothing is half done meanwhile, so the keeper's own handlers pass.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use rtld_sys::lock::Futex;
use rtld_sys::thread;
use sigblock::{ThreadState, callback, section};

/// A lock.
#[derive(Debug)]
pub struct Lock {
    futex: Futex,
    /// The thread, by its thread pointer, that keeps the lock around a fork; 0 for none.
    keeper: AtomicUsize,
    /// How many forks it is kept for: a handler may fork while its thread does.
    kept: AtomicU32,
}

impl Lock {
    /// A free lock.
    pub const fn new() -> Lock {
        Lock { futex: Futex::new(), keeper: AtomicUsize::new(0), kept: AtomicU32::new(0) }
    }

    fn is_kept_here(&self) -> bool {
        let keeper = self.keeper.load(Ordering::Relaxed);
        // SAFETY: where there is a keeper threads have thread pointers.
        keeper != 0 && keeper == unsafe { thread::pointer() }
    }

    /// Does something short under the lock, in a section.
    pub fn briefly<R>(&self, work: impl FnOnce() -> R) -> R {
        section::inside(|| {
            let taken = self.take();
            let result = work();
            self.give(taken);
            result
        })
    }

    /// Takes the lock in a section; gives whether it is to be given back.
    #[inline(never)]
    fn take(&self) -> bool {
        let takes = !self.is_kept_here();
        if takes {
            self.futex.acquire();
        }
        takes
    }

    #[inline(never)]
    fn give(&self, taken: bool) {
        if taken {
            self.futex.release();
        }
    }

    /// Enters a section and takes the lock in it, waiting outside; gives whether the lock is to be given back.
    #[inline(never)]
    fn enter(&self, state: &ThreadState) -> bool {
        loop {
            section::enter(state);
            if self.is_kept_here() {
                return false;
            }
            if self.futex.try_acquire() {
                return true;
            }
            section::leave(state);
            // Whoever calls from a callback sleeps too.
            callback::suspend(state);
            self.futex.wait();
        }
    }

    /// Does something under the lock, in a section; waits for the lock outside.
    pub fn with<R>(&self, work: impl FnOnce() -> R) -> R {
        let state = sigblock::current();
        let taken = self.enter(state);
        let result = work();
        self.give(taken);
        section::leave(state);
        result
    }

    /// Keeps the lock for the calling thread until [`Lock::let_go`].
    pub fn keep(&self) {
        let state = sigblock::current();
        if self.enter(state) {
            // SAFETY: threads of this process have thread pointers.
            self.keeper.store(unsafe { thread::pointer() }, Ordering::Relaxed);
        }
        self.kept.fetch_add(1, Ordering::Relaxed);
        section::leave(state);
    }

    /// Ends a keep, also in the child of the fork.
    pub fn let_go(&self) {
        section::inside(|| {
            if self.kept.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.keeper.store(0, Ordering::Relaxed);
                self.futex.release();
            }
        });
    }

    /// Frees the lock in the child of a fork that nobody kept it around: its holder may not be there.
    pub fn reset(&self) {
        self.keeper.store(0, Ordering::Relaxed);
        self.kept.store(0, Ordering::Relaxed);
        self.futex.reset();
    }
}

impl Default for Lock {
    fn default() -> Lock {
        Lock::new()
    }
}
