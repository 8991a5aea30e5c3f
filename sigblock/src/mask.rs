//! The C library's functions that read or change the signal mask, as sections make them: inside a section whose end gives a
//! mask back, they see and change that one.

use crate::backend::{self, Backend};
use crate::hold::{self, INTERNAL, bit};
use crate::outside::set_error;
use crate::state::{self, ThreadState};
use crate::{stash, word};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use linux_raw_sys::errno::{EFAULT, EINVAL};
use linux_raw_sys::general as kernel;
use rtld_sys::signal::{self, How, Mask};

/// Whether the mask of the thread is one that a section has set, and gives back.
fn is_marked(state: &ThreadState) -> bool {
    let word = state.word.load(Ordering::Relaxed);
    word & word::PENDING != 0 && word & !word::FLAGS != 0
}

/// The mask as the program sees it, where a section has set it: of what sections hold the one to go back to, of the rest the
/// kernel's (in the handler of a fault it has more). What the kernel's mask lacks was only in that of such a handler, inside
/// which a signal was put away.
fn seen(state: &ThreadState, kernels: Mask) -> Mask {
    let hold = hold::current();
    kernels & (state.saved.load(Ordering::Relaxed) | !hold)
}

/// Has the section set the mask, if the thread is inside one: a signal that came between a look at the mark and a change would
/// take the change for the section's. Gives whether a section's end gives a mask back, and the kernel's mask.
fn settle(state: &ThreadState) -> Option<(bool, Mask)> {
    if !word::is_raised(&state.word) {
        return None;
    }
    let now = signal::change_mask(How::Block, hold::current()).ok()?;
    Some((is_marked(state), now))
}

/// Changes the mask as the program sees it, and gives the one before.
pub(crate) fn change(how: How, set: Mask) -> Mask {
    let state = state::current();
    let Some((marked, now)) = settle(state) else {
        return signal::change_mask(how, set).unwrap_or(0);
    };
    let before = if marked { seen(state, now) } else { now };
    let after = match how {
        How::Block => before | set,
        How::Unblock => before & !set,
        How::Set => set,
    };
    state.saved.store(after & !hold::ALWAYS, Ordering::Relaxed);
    // What sections do not hold changes at once.
    let _ = signal::change_mask(How::Set, if marked { after | hold::current() } else { after });
    before
}

/// The mask as the program sees it.
fn current() -> Mask {
    let state = state::current();
    // The look at the mark comes second: what was not marked then was not before.
    let now = signal::mask();
    if is_marked(state) { seen(state, now) } else { now }
}

/// In a section that goes on: gives the kernel the mask that the program sees, for a call that hands it on to a new thread
/// or process. What comes meanwhile is put away as well.
pub(crate) fn lend(state: &ThreadState) {
    if is_marked(state) && backend::current() == Backend::User {
        open_mask(state);
    }
}

/// What waits in the kernel comes as soon as it may, is put away, and has the mask closed again: until there is no more.
fn open_mask(state: &ThreadState) {
    for _ in 0..stash::SLOTS {
        let mask = seen(state, signal::mask());
        let _ = signal::change_mask(How::Set, mask);
        if signal::mask() == mask {
            return;
        }
    }
}

/// pthread_sigmask(3): an error number, or 0.
pub(crate) extern "C" fn pthread_sigmask(how: c_int, set: *const Mask, old: *mut Mask) -> c_int {
    let before = if set.is_null() {
        current()
    } else {
        let how = match how as u32 {
            kernel::SIG_BLOCK => How::Block,
            kernel::SIG_UNBLOCK => How::Unblock,
            kernel::SIG_SETMASK => How::Set,
            _ => return EINVAL as c_int,
        };
        // SAFETY: callers pass a sigset_t, of which the kernel's part comes first.
        change(how, unsafe { set.read_unaligned() } & !INTERNAL)
    };
    if !old.is_null() {
        // SAFETY: callers pass a sigset_t to fill, of which the C library fills the kernel's part.
        unsafe { old.write_unaligned(before) };
    }
    0
}

/// sigprocmask(2).
pub(crate) extern "C" fn sigprocmask(how: c_int, set: *const Mask, old: *mut Mask) -> c_int {
    match pthread_sigmask(how, set, old) {
        0 => 0,
        error => set_error(error),
    }
}

fn change_one(how: How, number: c_int) -> c_int {
    if bit(number) == 0 || INTERNAL & bit(number) != 0 {
        return set_error(EINVAL as c_int);
    }
    change(how, bit(number));
    0
}

/// sighold(3).
pub(crate) extern "C" fn sighold(number: c_int) -> c_int {
    change_one(How::Block, number)
}

/// sigrelse(3).
pub(crate) extern "C" fn sigrelse(number: c_int) -> c_int {
    change_one(How::Unblock, number)
}

/// sigblock(3).
pub(crate) extern "C" fn sigblock(mask: c_int) -> c_int {
    change(How::Block, Mask::from(mask as u32) & !INTERNAL) as c_int
}

/// sigsetmask(3).
pub(crate) extern "C" fn sigsetmask(mask: c_int) -> c_int {
    change(How::Set, Mask::from(mask as u32) & !INTERNAL) as c_int
}

/// siggetmask(3).
pub(crate) extern "C" fn siggetmask() -> c_int {
    current() as c_int
}

/// sigpending(2), with those that wait for a section's end.
pub(crate) extern "C" fn sigpending(set: *mut Mask) -> c_int {
    if set.is_null() {
        return set_error(EFAULT as c_int);
    }
    let state = state::current();
    let pending = signal::pending() | stash::quietly(state, || stash::numbers(state)).unwrap_or(0);
    // SAFETY: callers pass a sigset_t to fill, of which the C library fills the kernel's part.
    unsafe { set.write_unaligned(pending) };
    0
}
