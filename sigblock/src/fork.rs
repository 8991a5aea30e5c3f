//! The child of a fork(2): one thread, with the actions of its parent. It is inside the sections that the program itself has
//! entered, but what was put away in them is its parent's.

use crate::action;
use crate::mask;
use crate::stash;
use crate::state::ThreadState;
use crate::word;
use core::sync::atomic::Ordering;

/// Before the fork: the child begins with the mask that the program has. Gives how many signals the thread has put away in
/// a section that goes on.
pub(crate) fn before(state: &ThreadState) -> usize {
    mask::lend(state);
    if word::is_raised(&state.word) { state.held.load(Ordering::Relaxed) as usize } else { 0 }
}

/// In the child.
pub(crate) fn in_child(state: &ThreadState, put_away: usize) {
    // Another thread of the parent's may have been changing an action. Each change is one store, so the table is whole; its
    // lock is not.
    action::LOCK.reset();
    for _ in 0..put_away {
        stash::take(state, |_| true);
    }
}
