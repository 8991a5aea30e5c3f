//! Whether an object may be unloaded: one atomic word in its handle.
//!
//! Bit 0 says that the object is being closed, bit 1 that it must stay for ever because a slot somewhere was bound to
//! it that nobody keeps account of, the rest counts callbacks that are looking at it. A binder that finds the object
//! closing looks again; a closer that finds that it must stay leaves it; what is looked at is not unmapped.

use crate::atomics::{Machine, Memory, Word};
use crate::world::Handle;
use core::sync::atomic::{AtomicU32, Ordering};

const CLOSING: u32 = 1;
const STAYS: u32 = 2;
const VISIT: u32 = 4;

/// The word.
#[derive(Debug)]
pub struct Hold<M: Memory = Machine>(pub(crate) M::U32);

impl Hold {
    /// Of an object that nobody holds.
    pub const fn new() -> Hold {
        Hold(AtomicU32::new(0))
    }
}

impl Default for Hold {
    fn default() -> Hold {
        Hold::new()
    }
}

impl<M: Memory> Hold<M> {
    /// Changes the word unless it has this bit; false if it has.
    fn change_unless(&self, bit: u32, change: impl Fn(u32) -> u32) -> bool {
        let mut seen = self.0.load(Ordering::Acquire);
        while seen & bit == 0 {
            match self.0.compare_exchange(seen, change(seen), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
        false
    }

    /// Makes the object stay; false if it is being closed.
    pub fn keep(&self) -> bool {
        self.change_unless(CLOSING, |value| value | STAYS)
    }

    /// Begins a visit: the object is not unmapped before its end. False if it is being closed.
    pub fn visit(&self) -> bool {
        self.change_unless(CLOSING, |value| value.wrapping_add(VISIT))
    }

    /// Ends a visit.
    pub fn end_visit(&self) {
        self.0.fetch_sub(VISIT, Ordering::AcqRel);
    }

    /// Whether the object must stay.
    pub fn stays(&self) -> bool {
        self.0.load(Ordering::Acquire) & STAYS != 0
    }

    /// Whether somebody is looking at the object.
    pub fn is_visited(&self) -> bool {
        self.0.load(Ordering::Acquire) >= VISIT
    }

    /// Begins to close the object; false if it must stay.
    pub fn close(&self) -> bool {
        self.change_unless(STAYS, |value| value | CLOSING)
    }

    /// Gives up closing.
    pub fn reopen(&self) {
        self.0.fetch_and(!CLOSING, Ordering::AcqRel);
    }
}

fn hold(handle: *mut Handle) -> Option<&'static Hold> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: handles in a snapshot are alive as long as the snapshot is read.
    Some(unsafe { &(*handle).hold })
}

/// [`Hold::keep`] of the object with this handle; false without a handle.
pub fn keep(handle: *mut Handle) -> bool {
    hold(handle).is_some_and(Hold::keep)
}

/// [`Hold::visit`] of the object with this handle; false without a handle.
pub fn visit(handle: *mut Handle) -> bool {
    hold(handle).is_some_and(Hold::visit)
}

/// [`Hold::end_visit`] of the object with this handle.
pub fn end_visit(handle: *mut Handle) {
    if let Some(hold) = hold(handle) {
        hold.end_visit();
    }
}

/// Whether the object with this handle must stay; what has none does.
pub fn stays(handle: *mut Handle) -> bool {
    hold(handle).is_none_or(Hold::stays)
}

/// Whether somebody is looking at the object with this handle.
pub fn is_visited(handle: *mut Handle) -> bool {
    hold(handle).is_some_and(Hold::is_visited)
}

/// [`Hold::close`] of the object with this handle; false without a handle.
pub fn close(handle: *mut Handle) -> bool {
    hold(handle).is_some_and(Hold::close)
}

/// [`Hold::reopen`] of the object with this handle.
pub fn reopen(handle: *mut Handle) {
    if let Some(hold) = hold(handle) {
        hold.reopen();
    }
}
