//! Signals that came inside a section, in user mode, oldest first. Only the thread itself touches its stash, with every
//! signal blocked that could be put there.
//!
//! A thread has a stash only while something is in it: it takes one from a pool, in a handler, by a compare-and-swap.

use crate::hold;
use crate::state::ThreadState;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use rtld_sys::memory;
use rtld_sys::signal::{self, How, Information, Mask};

/// How many fit: as many as can wait at once, for each number one. After the first one the kernel holds all that follow.
pub(crate) const SLOTS: usize = 64;

/// One signal.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub signal: i32,
    /// The process that it came to, if that may be a vfork child in this thread's state; else 0.
    pub process: i32,
    pub information: Information,
}

/// A place for signals that wait: about 9 KiB, of which what is not used is not touched.
pub(crate) struct Stash {
    taken: AtomicBool,
    next: AtomicPtr<Stash>,
    slots: UnsafeCell<[MaybeUninit<Slot>; SLOTS]>,
}

// SAFETY: slots are only touched by the thread that has taken the stash.
unsafe impl Sync for Stash {}

impl Stash {
    const fn new() -> Stash {
        Stash {
            taken: AtomicBool::new(false),
            next: AtomicPtr::new(core::ptr::null_mut()),
            slots: UnsafeCell::new([MaybeUninit::uninit(); SLOTS]),
        }
    }

    fn take(&self) -> bool {
        self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

/// The first ones of the pool. In the loader they lie behind what its start uses (rtld/ld/late.ld).
#[unsafe(link_section = ".bss.late.b")]
static FIRST: [Stash; 8] = [const { Stash::new() }; 8];
/// Those that were mapped because more threads than that held something at once. They stay.
static MORE: AtomicPtr<Stash> = AtomicPtr::new(core::ptr::null_mut());

/// A stash that nobody else has; None without memory.
fn claim() -> Option<*mut Stash> {
    if let Some(free) = FIRST.iter().find(|stash| stash.take()) {
        return Some(core::ptr::from_ref(free).cast_mut());
    }
    let first = MORE.load(Ordering::Acquire);
    let mut next = first;
    // SAFETY: what is in the list is never unmapped.
    while let Some(stash) = unsafe { next.as_ref() } {
        if stash.take() {
            return Some(next);
        }
        next = stash.next.load(Ordering::Acquire);
    }
    let fresh = memory::map_anonymous(size_of::<Stash>(), memory::READ | memory::WRITE).ok()?;
    let fresh = core::ptr::with_exposed_provenance_mut::<Stash>(fresh);
    // SAFETY: fresh pages, all zero, which is a stash that nobody has taken.
    let stash = unsafe { &*fresh };
    stash.taken.store(true, Ordering::Relaxed);
    let mut first = first;
    loop {
        stash.next.store(first, Ordering::Relaxed);
        match MORE.compare_exchange_weak(first, fresh, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return Some(fresh),
            Err(now) => first = now,
        }
    }
}

/// The slots of the calling thread, and how many are in use.
fn with<R>(state: &ThreadState, work: impl FnOnce(&mut [MaybeUninit<Slot>; SLOTS], &mut usize) -> R) -> Option<R> {
    let stash = state.stash.load(Ordering::Relaxed);
    // SAFETY: a stash that a thread has is not unmapped.
    let stash = unsafe { stash.as_ref() }?;
    let before = (state.held.load(Ordering::Relaxed) as usize).min(SLOTS);
    let mut used = before;
    // SAFETY: a stash belongs to one thread, which is the caller (or has ended), and no signal interrupts its use.
    let slots = unsafe { &mut *stash.slots.get() };
    let result = work(slots, &mut used);
    // Who only looks writes nothing: signals may come meanwhile.
    if used != before {
        state.held.store(used as u32, Ordering::Relaxed);
    }
    if used == 0 {
        state.stash.store(core::ptr::null_mut(), Ordering::Relaxed);
        stash.taken.store(false, Ordering::Release);
    }
    Some(result)
}

/// Does something with the stash of the calling thread where signals may come that would touch it: none comes meanwhile. None
/// where the stash is empty.
pub(crate) fn quietly<R>(state: &ThreadState, work: impl FnOnce() -> R) -> Option<R> {
    if state.held.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let before = signal::change_mask(How::Block, hold::current()).ok()?;
    let result = work();
    let _ = signal::change_mask(How::Set, before);
    Some(result)
}

/// The slots in use.
fn in_use(slots: &[MaybeUninit<Slot>; SLOTS], used: usize) -> impl Iterator<Item = &Slot> {
    // SAFETY: the first `used` slots were written.
    slots.iter().take(used).map(|slot| unsafe { slot.assume_init_ref() })
}

/// Puts a signal behind the others; false if there is no room.
pub(crate) fn push(state: &ThreadState, fresh: Slot) -> bool {
    if state.stash.load(Ordering::Relaxed).is_null() {
        let Some(stash) = claim() else { return false };
        state.stash.store(stash, Ordering::Relaxed);
    }
    with(state, |slots, used| match slots.get_mut(*used) {
        Some(slot) => {
            slot.write(fresh);
            *used += 1;
            true
        }
        None => false,
    })
    .unwrap_or(false)
}

/// Whether a signal of this number is there.
pub(crate) fn contains(state: &ThreadState, signal: i32) -> bool {
    with(state, |slots, used| in_use(slots, *used).any(|slot| slot.signal == signal)).unwrap_or(false)
}

/// Takes the oldest one that fits.
pub(crate) fn take(state: &ThreadState, fits: impl Fn(&Slot) -> bool) -> Option<Slot> {
    with(state, |slots, used| {
        let position = in_use(slots, *used).position(fits)?;
        let taken = in_use(slots, *used).nth(position).copied();
        slots.copy_within(position + 1..*used, position);
        *used -= 1;
        taken
    })
    .flatten()
}

/// The numbers of the signals that are there, as a set.
pub(crate) fn numbers(state: &ThreadState) -> Mask {
    with(state, |slots, used| in_use(slots, *used).fold(0, |set, slot| set | hold::bit(slot.signal))).unwrap_or(0)
}

/// Drops all of a number.
pub(crate) fn discard(state: &ThreadState, signal: i32) {
    quietly(state, || while take(state, |slot| slot.signal == signal).is_some() {});
}

/// The number of the signal at a position.
pub(crate) fn number_at(state: &ThreadState, position: usize) -> Option<i32> {
    with(state, |slots, used| in_use(slots, *used).nth(position).map(|slot| slot.signal)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    fn slot(signal: i32, value: usize) -> Slot {
        Slot { signal, process: 0, information: Information { signal, value, ..Information::EMPTY } }
    }

    #[test]
    fn the_oldest_of_a_number_comes_first() {
        let state: Box<ThreadState> = Box::new(ThreadState::fresh());
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
        while take(&state, |_| true).is_some() {}
        assert!(state.stash.load(Ordering::Relaxed).is_null());
    }

    #[test]
    fn a_pool_that_is_used_up_grows_and_is_used_again() {
        let states: Vec<Box<ThreadState>> = (0..40).map(|_| Box::new(ThreadState::fresh())).collect();
        let places = || {
            let mut places: Vec<_> = states
                .iter()
                .enumerate()
                .map(|(value, state)| {
                    assert!(push(state, slot(34, value)));
                    state.stash.load(Ordering::Relaxed)
                })
                .collect();
            for (value, state) in states.iter().enumerate() {
                assert_eq!(take(state, |_| true).map(|slot| slot.information.value), Some(value));
            }
            places.sort_unstable();
            places.dedup();
            places
        };
        let first = places();
        assert_eq!(first.len(), 40);
        assert_eq!(places(), first);
    }
}
