//! Loom's words and a futex on them, threads with a section's word, and things that must not be used once they are freed.

use crate::atomics::{Memory, Word};
use crate::reclaim::{Reader, Readers};
use core::sync::atomic::Ordering;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicUsize, fence};
use loom::sync::{Condvar, Mutex};
use rtld_link::fallible::{OutOfMemory, try_push};

/// Loom takes sequentially consistent accesses for acquiring and releasing ones, but knows such fences.
fn ordered<R>(order: Ordering, access: impl FnOnce() -> R) -> R {
    let strong = order == Ordering::SeqCst;
    if strong {
        fence(Ordering::SeqCst);
    }
    let result = access();
    if strong {
        fence(Ordering::SeqCst);
    }
    result
}

macro_rules! word {
    ($type:ty, $value:ty) => {
        impl Word<$value> for $type {
            fn load(&self, order: Ordering) -> $value {
                ordered(order, || <$type>::load(self, order))
            }
            fn store(&self, value: $value, order: Ordering) {
                ordered(order, || <$type>::store(self, value, order));
            }
            fn swap(&self, value: $value, order: Ordering) -> $value {
                ordered(order, || <$type>::swap(self, value, order))
            }
            fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                ordered(success, || <$type>::compare_exchange(self, old, new, success, failure))
            }
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                ordered(order, || <$type>::fetch_add(self, value, order))
            }
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                ordered(order, || <$type>::fetch_sub(self, value, order))
            }
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                ordered(order, || <$type>::fetch_and(self, value, order))
            }
        }
    };
}

word!(AtomicU32, u32);
word!(AtomicUsize, usize);

loom::lazy_static! {
    /// The kernel's queue of sleepers: one for all words, whose wakes are spurious for those of other words.
    static ref QUEUE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// Loom's memory.
pub(super) enum Loom {}

impl Memory for Loom {
    type U32 = AtomicU32;
    type Address = AtomicUsize;

    fn wait_while(word: &AtomicU32, value: u32) {
        let guard = QUEUE.0.lock().unwrap();
        // The kernel compares and goes to sleep in one step.
        if word.load(Ordering::SeqCst) == value {
            drop(QUEUE.1.wait(guard).unwrap());
        }
    }

    fn wake_all(_: &AtomicU32) {
        let _guard = QUEUE.0.lock().unwrap();
        QUEUE.1.notify_all();
    }
}

/// The state of one thread: the section's word and how often it rested.
pub(super) struct Section {
    word: AtomicU32,
    rests: AtomicU32,
}

impl Section {
    pub(super) fn new() -> Section {
        Section { word: AtomicU32::new(0), rests: AtomicU32::new(0) }
    }

    pub(super) fn enter(&self) {
        self.word.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub(super) fn leave(&self) {
        self.word.fetch_sub(1, Ordering::Release);
    }

    pub(super) fn rest(&self) {
        self.rests.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
    }
}

/// The writer's view of one reading thread.
pub(super) struct One<'a>(pub(super) &'a Section);

impl Readers for One<'_> {
    fn barrier(&self) -> bool {
        fence(Ordering::SeqCst);
        true
    }

    fn collect(&self, threads: &mut Vec<Reader>) -> Result<(), OutOfMemory> {
        try_push(threads, Reader { control: 1, rests: self.0.rests.load(Ordering::Acquire) })
    }

    fn is_outside(&self, reader: Reader) -> bool {
        self.0.word.load(Ordering::Acquire) == 0 || self.0.rests.load(Ordering::Acquire) != reader.rests
    }
}

/// Something with a life: loom fails where it is freed while it is used, or used without the freer's knowing.
pub(super) struct Thing(UnsafeCell<bool>);

impl Thing {
    pub(super) fn new() -> Thing {
        Thing(UnsafeCell::new(true))
    }

    pub(super) fn look(&self) {
        // SAFETY: loom watches the cell.
        assert!(self.0.with(|alive| unsafe { *alive }), "it was freed");
    }

    pub(super) fn free(&self) {
        // SAFETY: loom watches the cell.
        self.0.with_mut(|alive| unsafe { *alive = false });
    }

    /// Changes it, which nobody else may be doing.
    pub(super) fn change(&self) {
        // SAFETY: loom watches the cell.
        self.0.with_mut(|alive| unsafe { *alive = true });
    }
}
