//! Sections of the calling thread. Between `enter` and its `leave` no handler of a signal in the hold set runs; nothing there
//! may sleep, call foreign code, or end the program's image.

use crate::backend::{self, Backend};
use crate::deliver;
use crate::hold;
use crate::state::{self, REGISTERED, ThreadState};
use crate::word::{self, PENDING};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use rtld_sys::signal::{self, How};

/// What entering has to do beyond raising the word; 0 for nothing.
static EXTRA: AtomicU8 = AtomicU8::new(0);
/// Sections are counted.
pub(crate) const COUNT: u8 = 1;
/// The back end must hear of the outermost one.
pub(crate) const TELL: u8 = 2;
/// The outermost section changes the mask.
pub(crate) const MASKS: u8 = 4;

/// Outermost sections, if they are counted.
static SECTIONS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn set_extra(extra: u8) {
    EXTRA.store(extra, Ordering::Relaxed);
}

/// From here on the outermost sections of threads that the kernel does not know change the mask.
fn add_masks() {
    EXTRA.fetch_or(MASKS, Ordering::Relaxed);
}

pub(crate) fn counted() -> u64 {
    SECTIONS.load(Ordering::Relaxed)
}

/// Enters a section. The state must be the calling thread's.
#[inline(always)]
pub fn enter(state: &ThreadState) {
    if EXTRA.load(Ordering::Relaxed) == 0 {
        // SAFETY: the caller's own word.
        unsafe { word::enter(&state.word) };
    } else {
        enter_slowly(state);
    }
    word::note_stack(&state.stack);
}

/// Leaves a section; at the end of the outermost one what was held is delivered.
#[inline(always)]
pub fn leave(state: &ThreadState) {
    if EXTRA.load(Ordering::Relaxed) & MASKS != 0 {
        return leave_with_mask(state);
    }
    // SAFETY: the caller's own word, which `enter` raised.
    if unsafe { word::leave(&state.word) } == PENDING {
        deliver::at_end(state);
    }
}

/// Leaves a section where those of some threads change the mask. The mask to go back to is read, and the mark taken away, while the section is still
/// open: a handler that is not held, and has a section of its own, finds nothing to finish or to overwrite.
#[cold]
#[inline(never)]
fn leave_with_mask(state: &ThreadState) {
    if state.state.load(Ordering::Relaxed) & REGISTERED != 0 {
        // SAFETY: the caller's own word, which `enter` raised.
        if unsafe { word::leave(&state.word) } == PENDING {
            deliver::at_end(state);
        }
        return;
    }
    let saved = state.saved.load(Ordering::Relaxed);
    let ends = state.word.load(Ordering::Relaxed) == word::STEP | PENDING;
    if ends {
        state.word.store(word::STEP, Ordering::Relaxed);
    }
    // SAFETY: the caller's own word, which `enter` raised.
    unsafe { word::leave(&state.word) };
    if ends {
        let _ = signal::change_mask(How::Set, saved);
    }
}

/// Does something inside a section, once threads have states.
#[inline(always)]
pub fn inside<R>(work: impl FnOnce() -> R) -> R {
    if !state::is_there() {
        return work();
    }
    let state = state::current();
    enter(state);
    let result = work();
    leave(state);
    result
}

#[cold]
#[inline(never)]
fn enter_slowly(state: &ThreadState) {
    let mut before = None;
    if !word::is_raised(&state.word) {
        if EXTRA.load(Ordering::Relaxed) & COUNT != 0 {
            SECTIONS.fetch_add(1, Ordering::Relaxed);
        }
        let by_mask = match backend::current() {
            Backend::Kernel => {
                let known = state.state.load(Ordering::Relaxed) & REGISTERED != 0 || backend::register(state);
                if !known {
                    add_masks();
                }
                !known
            }
            Backend::Sigprocmask => true,
            Backend::User | Backend::Off => false,
        };
        if by_mask && state.word.load(Ordering::Relaxed) & PENDING == 0 {
            before = signal::change_mask(How::Block, hold::current()).ok();
        }
    }
    // SAFETY: the caller's own word.
    unsafe { word::enter(&state.word) };
    // Only now: a handler that is not held, and has a section of its own, must find this one open, or it would keep the
    // blocked mask as the one to go back to.
    if let Some(before) = before {
        state.saved.store(before, Ordering::Relaxed);
        // The end of the section finds the mark, and puts the mask back.
        state.word.fetch_or(PENDING, Ordering::Relaxed);
    }
}
