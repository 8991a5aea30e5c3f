//! Sections that stay open while foreign code runs: around the callbacks of dl_iterate_phdr.
//!
//! Such code may do anything: come back, throw, jump out, end its thread, sleep, load libraries. So each open section has a
//! record in the frame of the assembly thunk that called the callback, and whoever leaves the frame without returning to it
//! drops the record.

use crate::section;
use crate::state::{self, ThreadState};
use crate::{deliver, word};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use rtld_sys::signal;

/// What a section gives back when it is interrupted or ends without its callback's return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// The callback goes on, and may come back: give locks back, keep what it looks at.
    Suspend,
    /// The callback never returns: give everything back. Locks only if the section was not suspended before.
    Drop,
}

/// A section that is open around a callback.
#[repr(C)]
#[derive(Debug)]
pub struct Open {
    previous: *mut Open,
    /// A place in the frame that holds the record.
    stack: usize,
    raised: AtomicU32,
    place: AtomicU32,
    release: unsafe fn(*mut Open, Release),
}

/// The record is in its thread's list.
const LINKED: u32 = 1;
/// The record is in no list: it is new, closed, or another context runs.
const UNLINKED: u32 = 0;
/// Its callback was taken for gone.
const DROPPED: u32 = 2;

impl Open {
    /// A record that is not linked yet; `release` is called with its address.
    pub const fn new(release: unsafe fn(*mut Open, Release)) -> Open {
        Open {
            previous: core::ptr::null_mut(),
            stack: 0,
            raised: AtomicU32::new(0),
            place: AtomicU32::new(UNLINKED),
            release,
        }
    }

    /// Whether everything was given back since the record was opened, though its callback came back after all.
    pub fn was_dropped(&self) -> bool {
        self.place.load(Ordering::Relaxed) == DROPPED
    }

    /// Whether its section is open: the word counts it.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed) != 0
    }
}

/// Links a record, or opens the section of one again that was suspended. The caller has entered a section, which from now
/// on belongs to the record.
///
/// # Safety
/// The record must stay where it is until it is closed or abandoned; the state is the calling thread's.
pub unsafe fn open(state: &ThreadState, record: *mut Open) {
    // SAFETY: the caller's record.
    let entry = unsafe { &mut *record };
    if entry.place.load(Ordering::Relaxed) != LINKED {
        entry.place.store(LINKED, Ordering::Relaxed);
        entry.previous = state.open.load(Ordering::Relaxed);
        entry.stack = record.addr();
        state.open.store(record, Ordering::Relaxed);
    }
    entry.raised.store(1, Ordering::Relaxed);
}

/// Unlinks a record, and with it those inside it that were left; leaves its section if that is open.
///
/// # Safety
/// As [`open`], which was called before.
pub unsafe fn close(state: &ThreadState, record: *mut Open) {
    // SAFETY: the caller's record.
    let entry = unsafe { &*record };
    if entry.place.load(Ordering::Relaxed) == LINKED {
        while ![core::ptr::null_mut(), record].contains(&state.open.load(Ordering::Relaxed)) {
            abandon_innermost(state);
        }
        state.open.store(entry.previous, Ordering::Relaxed);
    }
    entry.place.store(UNLINKED, Ordering::Relaxed);
    // No handler finds the record any more, so the flag is nobody else's: no need for an exchange, which is dear.
    compiler_fence(Ordering::SeqCst);
    if entry.raised.load(Ordering::Relaxed) != 0 {
        entry.raised.store(0, Ordering::Relaxed);
        section::leave(state);
    }
}

/// Does something for each linked record, from the innermost on.
fn for_each(state: &ThreadState, mut work: impl FnMut(*mut Open, &Open)) {
    let mut record = state.open.load(Ordering::Relaxed);
    while !record.is_null() {
        // SAFETY: linked records are in frames that are alive.
        let entry = unsafe { &*record };
        let previous = entry.previous;
        work(record, entry);
        record = previous;
    }
}

/// Leaves all open sections for now: what was held is delivered. Each opens again when its callback returns.
pub fn suspend(state: &ThreadState) {
    for_each(state, |record, entry| {
        if entry.raised.swap(0, Ordering::Relaxed) != 0 {
            // SAFETY: the record is linked.
            unsafe { (entry.release)(record, Release::Suspend) };
            section::leave(state);
        }
    });
}

/// Suspends all sections of a context that another one takes the place of, and unlinks their records: a context that comes
/// back opens its own again.
pub(crate) fn detach(state: &ThreadState) {
    suspend(state);
    for_each(state, |_, entry| entry.place.store(UNLINKED, Ordering::Relaxed));
    state.open.store(core::ptr::null_mut(), Ordering::Relaxed);
}

/// Drops the innermost record: its frame is being unwound.
pub fn abandon_innermost(state: &ThreadState) {
    let record = state.open.load(Ordering::Relaxed);
    if record.is_null() {
        return;
    }
    // SAFETY: linked records are in frames that are alive, or just left and not yet overwritten.
    let entry = unsafe { &*record };
    state.open.store(entry.previous, Ordering::Relaxed);
    entry.place.store(DROPPED, Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { (entry.release)(record, Release::Drop) };
    if entry.raised.swap(0, Ordering::Relaxed) != 0 {
        section::leave(state);
    }
}

/// _UA_CLEANUP_PHASE: the frame is being unwound, also by pthread_exit (Itanium C++ ABI, level I).
const CLEANUP_PHASE: c_int = 2;
/// _URC_CONTINUE_UNWIND.
const CONTINUE_UNWIND: c_int = 8;

/// The personality routine of frames that hold a record. It never catches anything.
pub extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    _context: *mut c_void,
) -> c_int {
    if actions & CLEANUP_PHASE != 0 {
        // Frames are unwound from the innermost outwards, each once.
        abandon_innermost(state::current());
    }
    CONTINUE_UNWIND
}

/// How many sections are open in which foreign code runs: those of records, and the program's own.
pub fn raised(state: &ThreadState) -> u32 {
    let mut count = state.own.load(Ordering::Relaxed);
    for_each(state, |_, entry| count += u32::from(entry.is_raised()));
    count
}

/// The calling thread jumps to a frame with this stack pointer: what lies in frames that this leaves is dropped, if it is
/// within `reach`.
pub(crate) fn abandon_below(state: &ThreadState, target: usize, reach: usize) {
    let alternate = Alternate::ask(state);
    loop {
        let record = state.open.load(Ordering::Relaxed);
        if record.is_null() {
            break;
        }
        // SAFETY: linked records are in frames that are alive.
        let place = unsafe { (*record).stack };
        if !alternate.leaves(place, target) || target.wrapping_sub(place) > reach {
            break;
        }
        abandon_innermost(state);
    }
    leave_plain_section(state, &alternate, target);
}

/// A handler of a fault, or of a signal that is not held, that ran inside a section jumps out of it.
fn leave_plain_section(state: &ThreadState, alternate: &Alternate, target: usize) {
    let expected = raised(state) * word::STEP;
    let now = state.word.load(Ordering::Relaxed);
    if now & !word::FLAGS <= expected || !alternate.leaves(state.stack.load(Ordering::Relaxed), target) {
        return;
    }
    state.word.store(expected | now & word::FLAGS, Ordering::Relaxed);
    if expected == 0 && now & word::PENDING != 0 {
        deliver::at_end(state);
    }
}

/// The alternate signal stack: addresses on it are inside every frame of the other stack.
struct Alternate(Option<(usize, usize)>);

impl Alternate {
    fn ask(state: &ThreadState) -> Alternate {
        let open = !state.open.load(Ordering::Relaxed).is_null() || word::is_raised(&state.word);
        Alternate(if open { signal::alternate_stack() } else { None })
    }

    fn has(&self, address: usize) -> bool {
        self.0.is_some_and(|(start, size)| address.wrapping_sub(start) < size)
    }

    /// Whether a jump to `target` leaves the frame that `place` is in.
    fn leaves(&self, place: usize, target: usize) -> bool {
        match (self.has(place), self.has(target)) {
            (true, false) => true,
            (false, true) => false,
            _ => place < target,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_jump_leaves() {
        let stack = Alternate(Some((0x1000, 0x1000)));
        assert!(stack.leaves(0x8000, 0x8100) && !stack.leaves(0x8100, 0x8000) && !stack.leaves(0x8000, 0x8000));
        assert!(stack.leaves(0x1800, 0x8000));
        assert!(!stack.leaves(0x8000, 0x1800));
        assert!(stack.leaves(0x1100, 0x1200));
        // The alternate stack may lie above the other one.
        assert!(!stack.leaves(0x800, 0x1800) && stack.leaves(0x1800, 0x800));
    }
}
