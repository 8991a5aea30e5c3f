//! Signals that came inside a section, in user mode, oldest first. Only the thread itself touches its stash, with every
//! signal blocked that could be put there.

use crate::state::ThreadState;
use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;
use rtld_sys::signal::Information;

/// How many fit. After the first one the kernel holds all that follow; more come only where several were waiting at once.
pub(crate) const SLOTS: usize = 8;

/// One signal.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub signal: i32,
    /// The process that it came to, if that may be a vfork child in this thread's state; else 0.
    pub process: i32,
    pub information: Information,
}

const EMPTY: Slot = Slot { signal: 0, process: 0, information: Information::EMPTY };

/// A thread's place for signals that wait: about 1.1 KiB.
pub struct Stash(UnsafeCell<[Slot; SLOTS]>);

impl Stash {
    /// An empty one.
    pub const fn new() -> Stash {
        Stash(UnsafeCell::new([EMPTY; SLOTS]))
    }
}

impl Default for Stash {
    fn default() -> Stash {
        Stash::new()
    }
}

/// The slots of the calling thread, and how many are in use; None where the thread has no stash.
fn with<R>(state: &ThreadState, work: impl FnOnce(&mut [Slot; SLOTS], &mut usize) -> R) -> Option<R> {
    let stash = state.stash.load(Ordering::Relaxed);
    if stash.is_null() {
        return None;
    }
    let mut used = (state.held.load(Ordering::Relaxed) as usize).min(SLOTS);
    // SAFETY: a stash belongs to one thread, which is the caller (or has ended), and no signal interrupts its use.
    let slots = unsafe { &mut *(*stash).0.get() };
    let result = work(slots, &mut used);
    state.held.store(used as u32, Ordering::Relaxed);
    Some(result)
}

/// Puts a signal behind the others; false if there is no room.
pub(crate) fn push(state: &ThreadState, fresh: Slot) -> bool {
    with(state, |slots, used| match slots.get_mut(*used) {
        Some(slot) => {
            *slot = fresh;
            *used += 1;
            true
        }
        None => false,
    })
    .unwrap_or(false)
}

/// Whether a signal of this number is there.
pub(crate) fn contains(state: &ThreadState, signal: i32) -> bool {
    with(state, |slots, used| slots.iter().take(*used).any(|slot| slot.signal == signal)).unwrap_or(false)
}

/// Takes the oldest one that fits.
pub(crate) fn take(state: &ThreadState, fits: impl Fn(&Slot) -> bool) -> Option<Slot> {
    with(state, |slots, used| {
        let position = slots.iter().take(*used).position(fits)?;
        let taken = slots.get(position).copied();
        slots.copy_within(position + 1..*used, position);
        *used -= 1;
        taken
    })
    .flatten()
}

/// The number of the signal at a position.
pub(crate) fn number_at(state: &ThreadState, position: usize) -> Option<i32> {
    with(state, |slots, used| slots.get(..*used)?.get(position).map(|slot| slot.signal)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;

    fn slot(signal: i32, value: usize) -> Slot {
        Slot { signal, process: 0, information: Information { signal, value, ..Information::EMPTY } }
    }

    #[test]
    fn the_oldest_of_a_number_comes_first() {
        let state: Box<ThreadState> = Box::new(ThreadState::fresh());
        let mut stash = Stash::new();
        assert!(!push(&state, slot(10, 0)));
        state.stash.store(&mut stash, Ordering::Relaxed);
        for (signal, value) in [(10, 1), (34, 2), (10, 3), (34, 4)] {
            assert!(push(&state, slot(signal, value)));
        }
        let value = |slot: Option<Slot>| slot.map(|slot| slot.information.value);
        assert_eq!(value(take(&state, |slot| slot.signal == 34)), Some(2));
        assert_eq!(value(take(&state, |slot| slot.signal == 34)), Some(4));
        assert_eq!(value(take(&state, |slot| slot.signal == 34)), None);
        assert_eq!(number_at(&state, 1), Some(10));
        assert_eq!(number_at(&state, 2), None);
        assert_eq!(value(take(&state, |_| true)), Some(1));
        assert!(contains(&state, 10) && !contains(&state, 34));
        for _ in 0..SLOTS - 1 {
            assert!(push(&state, slot(12, 0)));
        }
        assert!(!push(&state, slot(12, 0)));
    }
}
