//! Whether an object may be unloaded: one atomic word in its handle.
//!
//! Bit 0 says that the object is being closed, bit 1 that it must stay for ever because a slot somewhere was bound to
//! it that nobody keeps account of, the rest counts callbacks that are looking at it. A binder that finds the object
//! closing looks again; a closer that finds that it must stay leaves it; what is looked at is not unmapped.

use crate::world::Handle;
use core::sync::atomic::{AtomicU32, Ordering};

const CLOSING: u32 = 1;
const STAYS: u32 = 2;
const VISIT: u32 = 4;

fn hold(handle: *mut Handle) -> Option<&'static AtomicU32> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: handles in a snapshot are alive as long as the snapshot is read.
    Some(unsafe { &(*handle).hold })
}

/// Makes the object stay; false if it is being closed.
pub fn keep(handle: *mut Handle) -> bool {
    let Some(word) = hold(handle) else { return false };
    let change = |value: u32| (value & CLOSING == 0).then_some(value | STAYS);
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
}

/// Begins a visit: the object is not unmapped before its end. False if it is being closed.
pub fn visit(handle: *mut Handle) -> bool {
    let Some(word) = hold(handle) else { return false };
    let change = |value: u32| (value & CLOSING == 0).then(|| value.wrapping_add(VISIT));
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
}

/// Ends a visit.
pub fn end_visit(handle: *mut Handle) {
    if let Some(word) = hold(handle) {
        word.fetch_sub(VISIT, Ordering::AcqRel);
    }
}

/// Whether the object must stay.
pub fn stays(handle: *mut Handle) -> bool {
    hold(handle).is_none_or(|word| word.load(Ordering::Acquire) & STAYS != 0)
}

/// Whether somebody is looking at the object.
pub fn is_visited(handle: *mut Handle) -> bool {
    hold(handle).is_some_and(|word| word.load(Ordering::Acquire) >= VISIT)
}

/// Begins to close the object; false if it must stay.
pub fn close(handle: *mut Handle) -> bool {
    let Some(word) = hold(handle) else { return false };
    let change = |value: u32| (value & STAYS == 0).then_some(value | CLOSING);
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
}

/// Gives up closing.
pub fn reopen(handle: *mut Handle) {
    if let Some(word) = hold(handle) {
        word.fetch_and(!CLOSING, Ordering::AcqRel);
    }
}
