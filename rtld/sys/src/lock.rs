//! A mutual-exclusion word on futex(2). It knows nothing of signals: who may hold it, and wait for it where, is decided
//! elsewhere.

use crate::call::call;
use core::sync::atomic::{AtomicU32, Ordering};
use linux_raw_sys::general as kernel;

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// A lock without an owner or a queue of its own. Its end wakes all who wait: none of them is bound to come and take it, so
/// none may be relied on to wake the next one.
#[derive(Debug, Default)]
pub struct Futex(AtomicU32);

impl Futex {
    /// A free lock.
    pub const fn new() -> Futex {
        Futex(AtomicU32::new(FREE))
    }

    /// Takes the lock if it is free.
    pub fn try_acquire(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the lock, sleeping while another thread holds it.
    pub fn acquire(&self) {
        if self.try_acquire() {
            return;
        }
        while self.0.swap(CONTENDED, Ordering::Acquire) != FREE {
            wait_while(&self.0, CONTENDED);
        }
    }

    /// Sleeps while another thread holds the lock, without taking it. May return for no reason: try again.
    pub fn wait(&self) {
        if self.0.compare_exchange(HELD, CONTENDED, Ordering::Relaxed, Ordering::Relaxed) != Err(FREE) {
            wait_while(&self.0, CONTENDED);
        }
    }

    /// Frees the lock whoever held it: in the child of a fork, where its holder may not exist.
    pub fn reset(&self) {
        self.0.store(FREE, Ordering::Release);
    }

    /// Gives the lock back. Only its holder may.
    pub fn release(&self) {
        if self.0.swap(FREE, Ordering::Release) == CONTENDED {
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
