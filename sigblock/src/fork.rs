//! The child of a fork(2): one thread, with the actions of its parent. It is inside the sections that the program itself has
//! entered, but what was put away in them is its parent's.

use crate::action;
use crate::hold::bit;
use crate::lineage;
use crate::mask;
use crate::stash;
use crate::state::ThreadState;
use crate::word;
use core::sync::atomic::{AtomicPtr, Ordering};
use rtld_sys::signal::{self, Mask};

/// What the child must drop: signals that its parent has put away.
pub(crate) struct PutAway {
    /// How many of the oldest ones, where the section in which they came goes on.
    pub oldest: usize,
    /// Those of these numbers, where it has ended: they wait in the kernel, where the child has none.
    pub waiting: Mask,
}

/// What the embedding program does first in a child; null for nothing.
static FIRST: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Has a function called at once in each child that comes through the C library's fork.
pub fn set_first(function: fn()) {
    FIRST.store(function as *mut (), Ordering::Relaxed);
}

/// In a child that may be one, and about to become another program or to end.
pub(crate) fn do_first() {
    let function = FIRST.load(Ordering::Relaxed);
    if !function.is_null() {
        // SAFETY: set_first stored a function of this type.
        let function = unsafe { core::mem::transmute::<*mut (), fn()>(function) };
        function();
    }
}

/// Before the fork: the child begins with the mask that the program has.
pub(crate) fn before(state: &ThreadState) -> PutAway {
    // Another thread may own the lock of the actions: the child must tell that it has another process's.
    lineage::watch();
    mask::lend(state);
    let held = state.held.load(Ordering::Relaxed) as usize;
    if word::is_raised(&state.word) {
        PutAway { oldest: held, waiting: 0 }
    } else {
        PutAway { oldest: 0, waiting: if held == 0 { 0 } else { signal::pending() } }
    }
}

/// In the child.
pub(crate) fn in_child(state: &ThreadState, put_away: &PutAway) {
    // Another thread of the parent's may have been changing an action. Each change is one store, so the table is whole; its
    // lock is not.
    action::LOCK.reset();
    stash::quietly(state, || {
        for _ in 0..put_away.oldest {
            stash::take(state, |_| true);
        }
        while stash::take(state, |slot| put_away.waiting & bit(slot.signal) != 0).is_some() {}
    });
    do_first();
}
