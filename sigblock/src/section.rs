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

/// Outermost sections, if they are counted.
static SECTIONS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn set_extra(extra: u8) {
    EXTRA.store(extra, Ordering::Relaxed);
}

pub(crate) fn counted() -> u64 {
    SECTIONS.load(Ordering::Relaxed)
}

/// Enters a section. The state must be the calling thread's.
#[inline(always)]
pub fn enter(state: &ThreadState) {
    if EXTRA.load(Ordering::Relaxed) != 0 {
        before_entering(state);
    }
    // SAFETY: the caller's own word.
    unsafe { word::enter(&state.word) };
    word::note_stack(&state.stack);
}

/// Leaves a section; at the end of the outermost one what was held is delivered.
#[inline(always)]
pub fn leave(state: &ThreadState) {
    // SAFETY: the caller's own word, which `enter` raised.
    if unsafe { word::leave(&state.word) } == PENDING {
        deliver::at_end(state);
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
fn before_entering(state: &ThreadState) {
    if word::is_raised(&state.word) {
        return;
    }
    if EXTRA.load(Ordering::Relaxed) & COUNT != 0 {
        SECTIONS.fetch_add(1, Ordering::Relaxed);
    }
    match backend::current() {
        Backend::Kernel if state.state.load(Ordering::Relaxed) & REGISTERED == 0 => {
            backend::register(state);
        }
        Backend::Sigprocmask if state.word.load(Ordering::Relaxed) & PENDING == 0 => {
            if let Ok(before) = signal::change_mask(How::Block, hold::current()) {
                state.saved.store(before, Ordering::Relaxed);
                // The end of the section finds the mark, and puts the mask back.
                state.word.store(PENDING, Ordering::Relaxed);
            }
        }
        _ => {}
    }
}
