//! What the protocols between threads are made of: words that several threads change, and sleeping until one changes. In the
//! loader these are the processor's and the kernel's; the model tests (`model`) run the same protocols on loom's, in every order
//! of their steps that the memory model allows.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use rtld_sys::lock;

/// A word. The operations are those of core's atomics.
pub trait Word<T> {
    /// Reads it.
    fn load(&self, order: Ordering) -> T;
    /// Writes it.
    fn store(&self, value: T, order: Ordering);
    /// Writes it; gives what it was.
    fn swap(&self, value: T, order: Ordering) -> T;
    /// Writes it if it is as expected; gives what it was.
    fn compare_exchange(&self, old: T, new: T, success: Ordering, failure: Ordering) -> Result<T, T>;
    /// Adds; gives what it was.
    fn fetch_add(&self, value: T, order: Ordering) -> T;
    /// Subtracts; gives what it was.
    fn fetch_sub(&self, value: T, order: Ordering) -> T;
    /// Keeps these bits; gives what it was.
    fn fetch_and(&self, value: T, order: Ordering) -> T;
}

/// A kind of words, and how one waits for them.
pub trait Memory {
    /// 32 bits, which one can wait for.
    type U32: Word<u32>;
    /// An address.
    type Address: Word<usize>;
    /// Sleeps while a word has this value. May return for no reason.
    fn wait_while(word: &Self::U32, value: u32);
    /// Wakes all that sleep on a word.
    fn wake_all(word: &Self::U32);
}

/// The machine's memory.
#[derive(Debug)]
pub enum Machine {}

impl Memory for Machine {
    type U32 = AtomicU32;
    type Address = AtomicUsize;

    fn wait_while(word: &AtomicU32, value: u32) {
        lock::wait_while(word, value);
    }

    fn wake_all(word: &AtomicU32) {
        lock::wake_all(word);
    }
}

/// Forwards the operations to those of the same names.
macro_rules! forward {
    ($type:ty, $value:ty) => {
        impl Word<$value> for $type {
            #[inline]
            fn load(&self, order: Ordering) -> $value {
                <$type>::load(self, order)
            }
            #[inline]
            fn store(&self, value: $value, order: Ordering) {
                <$type>::store(self, value, order);
            }
            #[inline]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                <$type>::swap(self, value, order)
            }
            #[inline]
            fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                <$type>::compare_exchange(self, old, new, success, failure)
            }
            #[inline]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                <$type>::fetch_add(self, value, order)
            }
            #[inline]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                <$type>::fetch_sub(self, value, order)
            }
            #[inline]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                <$type>::fetch_and(self, value, order)
            }
        }
    };
}
forward!(AtomicU32, u32);
forward!(AtomicUsize, usize);
