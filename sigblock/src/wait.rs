//! sigwait(3) and kin where the signal that is waited for was put away: it is the answer, as the kernel would give it, by
//! number and by age.

use crate::deliver::is_marker;
use crate::first_line::FIRST_QUEUED;
use crate::hold::bit;
use crate::stash::{self, Slot};
use crate::state::{self, IN_VFORK, ThreadState};
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use rtld_sys::signal::{self, Information, Mask};

/// The function that answers in place of the C library's, if the answer was put away.
pub(crate) fn has_answer(state: &ThreadState, name: &[u8], set: usize) -> Option<usize> {
    if state.state.load(Ordering::Relaxed) & IN_VFORK != 0 {
        return None;
    }
    stash::quietly(state, || answer_to(state, read(set)?)).flatten()?;
    Some(if name == b"sigwait" { wait as *const () as usize } else { wait_information as *const () as usize })
}

/// The kernel's part of a sigset_t of the caller's.
fn read(set: usize) -> Option<Mask> {
    let set = core::ptr::with_exposed_provenance::<Mask>(set);
    // SAFETY: callers of the sigwait family pass a sigset_t.
    (!set.is_null()).then(|| unsafe { set.read_unaligned() })
}

/// The lowest number of the set that was put away, if the kernel has no lower one.
fn answer_to(state: &ThreadState, set: Mask) -> Option<c_int> {
    let there = stash::numbers(state) & set;
    let lowest = there & there.wrapping_neg();
    let lower = signal::pending() & set & lowest.wrapping_sub(1);
    (there != 0 && lower == 0).then(|| there.trailing_zeros() as c_int + 1)
}

/// Takes the answer. What the kernel has of its number is younger: after a section's end one of them is our marker, whose
/// place the answer has (in the next section as well, if the program blocks the number), and a standard signal is one with
/// those that came later.
fn take(set: Mask) -> Option<Slot> {
    let state = state::current();
    let take = || {
        let number = answer_to(state, set)?;
        let taken = stash::take(state, |slot| slot.signal == number);
        let queues = number >= FIRST_QUEUED;
        if let Some(younger) = signal::take_pending(bit(number))
            && queues
            && !is_marker(&younger)
        {
            stash::push(state, Slot { signal: number, process: 0, information: younger });
        }
        taken
    };
    stash::quietly(state, take).flatten()
}

/// SI_USER: si_code of kill(2).
const BY_PROCESS: i32 = 0;

/// sigwaitinfo(2) and sigtimedwait(2), where there is an answer. As the C library does, tgkill is told as kill.
extern "C" fn wait_information(set: *const Mask, information: *mut Information) -> c_int {
    // SAFETY: the caller's set, which has_answer has read.
    let Some(mut slot) = take(unsafe { set.read_unaligned() }) else { return -1 };
    if slot.information.code == signal::TO_THREAD {
        slot.information.code = BY_PROCESS;
    }
    if !information.is_null() {
        // SAFETY: the caller passes a siginfo_t to fill.
        unsafe { information.write(slot.information) };
    }
    slot.signal
}

/// sigwait(3), where there is an answer.
extern "C" fn wait(set: *const Mask, number: *mut c_int) -> c_int {
    // SAFETY: the caller's set, which has_answer has read.
    if let Some(slot) = take(unsafe { set.read_unaligned() }) {
        // SAFETY: the caller passes a number to fill.
        unsafe { number.write(slot.signal) };
    }
    0
}
