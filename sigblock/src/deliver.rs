//! The end of a section in which a signal came.
//!
//! In user mode each signal that was put away gets a frame of its own from the kernel: we queue a marker of its number to
//! ourselves and give the mask back. Where that is refused, or a seccomp filter might kill us for it, its handler is called.

use crate::action;
use crate::backend::{self, Backend};
use crate::direct;
use crate::first_line;
use crate::hold;
use crate::stash::{self, Slot};
use crate::state::ThreadState;
use crate::word;
use core::sync::atomic::{AtomicU64, Ordering};
use rtld_sys::signal::{self, How, Information, Mask, QUEUED};

/// SIG_DFL.
pub(crate) const DEFAULT: usize = 0;

static HELD: AtomicU64 = AtomicU64::new(0);

pub(crate) fn count_held() {
    HELD.fetch_add(1, Ordering::Relaxed);
}

/// How many signals were put away; where the kernel holds them, how many sections ended that a signal had come in.
pub(crate) fn held() -> u64 {
    HELD.load(Ordering::Relaxed)
}

/// Its address says that a signal is a marker of ours.
static MARKER: u8 = 0;

/// Whether a signal is only the frame for one that was put away.
pub(crate) fn is_marker(information: &Information) -> bool {
    information.code == QUEUED && information.value == (&raw const MARKER).addr()
}

fn marker(number: i32) -> Information {
    Information {
        signal: number,
        code: QUEUED,
        process: rtld_sys::process::id(),
        value: (&raw const MARKER).addr(),
        ..Information::EMPTY
    }
}

/// The word was lowered to exactly [`crate::word::PENDING`].
#[cold]
#[inline(never)]
pub(crate) fn at_end(state: &ThreadState) {
    match backend::current() {
        Backend::Kernel => {
            count_held();
            backend::unblock(state);
        }
        Backend::User => give_out(state, mask_at_end(state)),
        Backend::Sigprocmask => {
            let saved = state.saved.load(Ordering::Relaxed);
            state.word.store(0, Ordering::Relaxed);
            let _ = signal::change_mask(How::Set, saved);
        }
        Backend::Off => state.word.store(0, Ordering::Relaxed),
    }
}

/// Blocks all that can be put away; gives the mask to go back to. The one that was saved may be that of a handler that passes
/// (of a fault), if the signal came inside it; its return has given the kernel the section's own mask then.
fn mask_at_end(state: &ThreadState) -> Mask {
    let saved = state.saved.load(Ordering::Relaxed);
    signal::change_mask(How::Block, hold::current()).map_or(saved, |now| saved & now)
}

/// Gives out what was put away; `mask` is the one to go back to. All that can be put away is blocked.
fn give_out(state: &ThreadState, mut mask: Mask) {
    state.word.store(0, Ordering::Relaxed);
    let mut position = 0;
    while let Some(number) = stash::number_at(state, position) {
        let framed = hold::has_handler(number) && !direct::is_filtered();
        if framed && signal::queue_to_myself(number, &marker(number)).is_ok() {
            position += 1;
            continue;
        }
        // Everything is as if this one had never been there, should the handler not come back.
        let Some(slot) = stash::take(state, |slot| slot.signal == number) else { break };
        match action::last(number) {
            Some(record) if hold::has_handler(number) || direct::is_filtered() => {
                mask = direct::call(state, record, slot, mask);
                let _ = signal::change_mask(How::Block, hold::current());
            }
            // The program has given the signal another action meanwhile, which the kernel knows.
            _ => {
                if signal::queue_to_myself(number, &slot.information).is_err() {
                    let _ = signal::send_to_myself(number);
                }
            }
        }
    }
    let _ = signal::change_mask(How::Set, mask);
}

/// Gives out what handlers that were called left behind when they did not come back.
pub(crate) fn give_out_rest(state: &ThreadState) {
    if state.held.load(Ordering::Relaxed) != 0
        && !word::is_raised(&state.word)
        && let Ok(before) = signal::change_mask(How::Block, hold::current())
    {
        give_out(state, before);
    }
}

/// Takes everything out of the stash of a thread that has ended, or of a child that is gone.
pub(crate) fn take_all(state: &ThreadState, mut work: impl FnMut(&Slot)) {
    while let Some(slot) = stash::take(state, |_| true) {
        if !is_marker(&slot.information) {
            work(&slot);
        }
    }
}

/// Drops what came to a vfork child in this thread's state.
pub(crate) fn drop_vfork(state: &ThreadState) {
    let me = rtld_sys::process::id();
    stash::quietly(state, || while stash::take(state, |slot| slot.process != 0 && slot.process != me).is_some() {});
}

/// As the kernel would reset a handler with SA_RESETHAND.
pub(crate) fn reset_if_asked(state: &ThreadState, number: i32, record: &'static action::Record) {
    if record.action.flags & first_line::SA_RESETHAND != 0 {
        first_line::reset(state, number, record);
    }
}
