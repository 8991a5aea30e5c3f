//! What each thread has: 64 bytes at a fixed distance below its thread pointer, in its static TLS. All zero is a fresh one.
//!
//! Owns where the state is, and its beginning and end. Only the thread itself changes it, except before it runs and after it
//! has ended; other threads may read the word.

use crate::callback::Open;
use crate::stash::Stash;
use crate::{deliver, hold, word};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use rtld_sys::{signal, thread};

/// One cache line: what a section touches, and nothing of the program's beside it.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ThreadState {
    /// The word.
    pub word: AtomicU32,
    /// REGISTERED, IN_VFORK and WATCHED; above them the count of `rests`.
    pub(crate) state: AtomicU32,
    /// While the word is marked: the signal mask to go back to at the section's end.
    pub(crate) saved: AtomicU64,
    /// Signals that wait; null while there are none.
    pub(crate) stash: AtomicPtr<Stash>,
    /// The innermost section that is open around a callback.
    pub(crate) open: AtomicPtr<Open>,
    /// Two words of whoever embeds the state.
    pub owner: [AtomicUsize; 2],
    /// The stack pointer when the last section was entered.
    pub(crate) stack: AtomicUsize,
    /// How many signals are in the stash.
    pub(crate) held: AtomicU32,
    /// How many sections the program itself has entered (`api`): foreign code runs in them.
    pub(crate) own: AtomicU32,
}

#[cfg(test)]
impl ThreadState {
    pub(crate) fn fresh() -> ThreadState {
        ThreadState {
            word: AtomicU32::new(0),
            state: AtomicU32::new(0),
            saved: AtomicU64::new(0),
            stash: AtomicPtr::new(core::ptr::null_mut()),
            open: AtomicPtr::new(core::ptr::null_mut()),
            owner: [AtomicUsize::new(0), AtomicUsize::new(0)],
            stack: AtomicUsize::new(0),
            held: AtomicU32::new(0),
            own: AtomicU32::new(0),
        }
    }
}

/// The word is known to the kernel.
pub(crate) const REGISTERED: u32 = 1;
/// The thread's end is noticed: `thread_end`.
pub(crate) const WATCHED: u32 = 4;
/// The thread has lent its stack and state to a vfork child that runs now.
pub(crate) const IN_VFORK: u32 = 2;

impl ThreadState {
    /// Counts a moment at which the calling thread, though inside a section, looks at nothing that sections protect. Not if a
    /// section around this one may be looking.
    #[inline]
    pub fn rest(&self) {
        if word::count(self.word.load(Ordering::Relaxed)) == 1 {
            // SAFETY: the calling thread's own word, whose low bits stay as they are.
            unsafe { word::enter(&self.state) };
        }
    }

    /// How many such moments there were, modulo 2^28; for other threads to compare.
    pub fn rests(&self) -> u32 {
        word::count(self.state.load(Ordering::Acquire))
    }
}

/// Size and alignment of the state.
pub const AREA: (usize, usize) = (size_of::<ThreadState>(), align_of::<ThreadState>());
const _: () = assert!(AREA.0 == 64 && AREA.1 == 64);

/// Distance of the state below the thread pointer.
static DISTANCE: AtomicUsize = AtomicUsize::new(0);

/// Says how far below the thread pointer each thread's state is. Once, before the first section.
pub fn set_area(distance: usize) {
    DISTANCE.store(distance, Ordering::Relaxed);
}

/// The calling thread's state.
#[inline(always)]
pub fn current() -> &'static ThreadState {
    // SAFETY: threads that use sections have thread pointers, and a state below them.
    unsafe { of(thread::pointer()) }
}

/// The state of the thread with this control block.
///
/// # Safety
/// There must be one, and it must stay as long as the result is used.
#[inline(always)]
pub unsafe fn of(control: usize) -> &'static ThreadState {
    let address = control.wrapping_sub(DISTANCE.load(Ordering::Relaxed));
    // SAFETY: the caller's promise; all its parts are atomic.
    unsafe { &*core::ptr::with_exposed_provenance::<ThreadState>(address) }
}

/// Whether states are where `set_area` said already.
pub(crate) fn is_there() -> bool {
    DISTANCE.load(Ordering::Relaxed) != 0
}

/// Makes the state of a thread that never ran, whatever is in its memory.
///
/// # Safety
/// The thread's static TLS must be there.
pub unsafe fn prepare(control: usize) {
    // SAFETY: the caller's promise.
    reset(unsafe { of(control) });
}

/// Makes the state of a thread fresh that has ended: another one may get its stack and TLS, or they are freed. A signal to
/// the process that the dead thread still held goes to the others.
///
/// # Safety
/// The state must be as the thread left it.
pub unsafe fn clear(control: usize) {
    // SAFETY: the caller's promise.
    let state = unsafe { of(control) };
    give_back(state);
    reset(state);
}

/// Makes the state of a thread fresh that is not in this process, the child of a fork. What it held is held in the parent.
///
/// # Safety
/// As [`clear`].
pub unsafe fn forget(control: usize) {
    // SAFETY: the caller's promise.
    let state = unsafe { of(control) };
    deliver::take_all(state, |_| ());
    reset(state);
}

pub(crate) fn give_back(state: &ThreadState) {
    deliver::take_all(state, |slot| {
        // What was directed at the thread ends with it.
        let to_process = slot.information.code != signal::TO_THREAD;
        if to_process
            && hold::has_handler(slot.signal)
            && signal::queue_to_process(slot.signal, &slot.information).is_err()
        {
            // Only the kernel may say that a signal is from kill(2) or from itself.
            let _ = signal::send_to_process(slot.signal);
        }
    });
}

fn reset(state: &ThreadState) {
    state.word.store(0, Ordering::Relaxed);
    state.state.store(0, Ordering::Relaxed);
    state.saved.store(0, Ordering::Relaxed);
    state.open.store(core::ptr::null_mut(), Ordering::Relaxed);
    state.stash.store(core::ptr::null_mut(), Ordering::Relaxed);
    state.stack.store(0, Ordering::Relaxed);
    state.held.store(0, Ordering::Relaxed);
    state.own.store(0, Ordering::Relaxed);
    for word in &state.owner {
        word.store(0, Ordering::Relaxed);
    }
}
