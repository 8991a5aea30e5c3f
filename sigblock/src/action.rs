//! What the program wants done with each signal, in user mode, where the kernel's own action is our first-line handler.
//!
//! One immutable record an action, swapped by pointer, so that a signal that comes in the middle sees the old or the new one.
//! Our first-line handler has several entry points, used in turn: the one that the kernel calls says which action the kernel
//! had, whose mask is in force.
//! Records are kept for ever and found again when the same action is set again: their number is that of different actions.

use crate::change_lock::ChangeLock;
use crate::hold::{HOLDABLE, bit};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use rtld_sys::memory;
use rtld_sys::signal::{Action, LAST};

/// An action of the program's, with a handler.
#[derive(Debug)]
pub(crate) struct Record {
    pub action: Action,
    next: *const Record,
}

/// How many entry points there are. A signal that is under way while its action changes this often gets a newer one's handler.
pub(crate) const TURNS: usize = 8;

/// What is known about one signal.
struct Entry {
    /// The action that our first-line handler serves; null where the kernel's action is the program's own.
    current: AtomicPtr<Record>,
    /// By entry point: the last action that the kernel was given with it.
    turns: [AtomicPtr<Record>; TURNS],
    /// The entry point that was used last.
    turn: AtomicUsize,
    /// All that there ever were.
    all: AtomicPtr<Record>,
}

impl Entry {
    const fn new() -> Entry {
        Entry {
            current: AtomicPtr::new(core::ptr::null_mut()),
            turns: [const { AtomicPtr::new(core::ptr::null_mut()) }; TURNS],
            turn: AtomicUsize::new(0),
            all: AtomicPtr::new(core::ptr::null_mut()),
        }
    }
}

static TABLE: [Entry; LAST as usize] = [const { Entry::new() }; LAST as usize];

/// Serialises changes, but for those of a handler that interrupts one.
pub(crate) static LOCK: ChangeLock = ChangeLock::new();

/// Whether our first-line handler stands before the program's for this signal.
pub(crate) fn is_ours(signal: i32) -> bool {
    HOLDABLE & bit(signal) != 0
}

fn entry(signal: i32) -> Option<&'static Entry> {
    TABLE.get(usize::try_from(signal.checked_sub(1)?).ok()?)
}

fn read(place: &AtomicPtr<Record>) -> Option<&'static Record> {
    // SAFETY: records are never freed and never changed once they are in the table.
    unsafe { place.load(Ordering::Acquire).as_ref() }
}

/// The action that our first-line handler serves now.
pub(crate) fn current(signal: i32) -> Option<&'static Record> {
    read(&entry(signal)?.current)
}

/// The action that the kernel had when it called this entry point.
pub(crate) fn at_turn(signal: i32, turn: usize) -> Option<&'static Record> {
    read(entry(signal)?.turns.get(turn)?)
}

/// The last action that had a handler.
pub(crate) fn last(signal: i32) -> Option<&'static Record> {
    let entry = entry(signal)?;
    read(entry.turns.get(entry.turn.load(Ordering::Acquire))?)
}

/// Makes an action the current one; gives the entry point to tell the kernel of, or None without memory. Under the lock.
pub(crate) fn set(signal: i32, action: &Action) -> Option<usize> {
    let entry = entry(signal)?;
    let record = core::ptr::from_ref(intern(entry, action)?).cast_mut();
    let turn = (entry.turn.load(Ordering::Relaxed) + 1) % TURNS;
    entry.turns.get(turn)?.store(record, Ordering::Release);
    entry.turn.store(turn, Ordering::Release);
    entry.current.store(record, Ordering::Release);
    Some(turn)
}

/// The kernel's action is the program's own again. Under the lock.
pub(crate) fn forget(signal: i32) {
    if let Some(entry) = entry(signal) {
        entry.current.store(core::ptr::null_mut(), Ordering::Release);
    }
}

/// Puts back what was there. Under the lock.
pub(crate) fn restore(signal: i32, record: Option<&'static Record>) {
    if let Some(entry) = entry(signal) {
        let record = record.map_or(core::ptr::null_mut(), |record| core::ptr::from_ref(record).cast_mut());
        entry.current.store(record, Ordering::Release);
    }
}

fn intern(entry: &Entry, action: &Action) -> Option<&'static Record> {
    let first = entry.all.load(Ordering::Acquire);
    let mut next: *const Record = first;
    // SAFETY: as in read().
    while let Some(record) = unsafe { next.as_ref() } {
        if record.action == *action {
            return Some(record);
        }
        next = record.next;
    }
    let place = new_place()?;
    // SAFETY: a fresh place of a record's size that nobody else has.
    unsafe { place.write(Record { action: *action, next: first }) };
    entry.all.store(place, Ordering::Release);
    // SAFETY: written above.
    Some(unsafe { &*place })
}

/// Records that need no mapping: enough for most programs.
const FIRST: usize = 64;

struct First(UnsafeCell<[core::mem::MaybeUninit<Record>; FIRST]>);

// SAFETY: places are handed out once each, under the lock.
unsafe impl Sync for First {}

static FIRST_PLACES: First = First(UnsafeCell::new([const { core::mem::MaybeUninit::uninit() }; FIRST]));
static FIRST_USED: AtomicUsize = AtomicUsize::new(0);

/// The rest of the last page that was mapped; its address is a page's where nothing is left, or there is none.
static NEXT_PLACE: AtomicUsize = AtomicUsize::new(0);
const PAGE: usize = 4096;

/// A place for a record, for ever. Under the lock, or in a handler that interrupts who has it.
fn new_place() -> Option<*mut Record> {
    let used = FIRST_USED.load(Ordering::Relaxed);
    if used < FIRST {
        let used = FIRST_USED.fetch_add(1, Ordering::Relaxed);
        if used < FIRST {
            return Some(FIRST_PLACES.0.get().cast::<Record>().wrapping_add(used));
        }
    }
    let mut next = NEXT_PLACE.load(Ordering::Relaxed);
    loop {
        let left = next.wrapping_neg() % PAGE;
        let place = if left >= size_of::<Record>() {
            next
        } else {
            memory::map_anonymous(PAGE, memory::READ | memory::WRITE).ok()?
        };
        let after = place.wrapping_add(size_of::<Record>());
        match NEXT_PLACE.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(core::ptr::with_exposed_provenance_mut(place)),
            // A handler came in between. What was mapped is lost, which happens once in a blue moon.
            Err(now) => next = now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_kept_and_found_again() {
        let action = |handler| Action { handler, ..Action::default() };
        assert!(current(34).is_none());
        assert_eq!(set(34, &action(0x1000)), Some(1));
        let first = current(34).map(core::ptr::from_ref);
        for handler in 0x2000..0x2100 {
            assert!(set(34, &action(handler)).is_some());
        }
        let turn = set(34, &action(0x1000));
        assert_eq!(current(34).map(core::ptr::from_ref), first);
        forget(34);
        assert!(current(34).is_none());
        let handler = |record: Option<&'static Record>| record.map(|record| record.action.handler);
        assert_eq!(handler(last(34)), Some(0x1000));
        assert_eq!(handler(turn.and_then(|turn| at_turn(34, turn))), Some(0x1000));
        assert_eq!(handler(turn.and_then(|turn| at_turn(34, (turn + TURNS - 1) % TURNS))), Some(0x20ff));
        assert!(current(0).is_none() && current(65).is_none() && current(-5).is_none());
    }
}
