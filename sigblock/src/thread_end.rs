//! The end of a thread inside a section of the program's own: what the thread still holds of the process's signals goes to the
//! other threads. The C library tells us by the destructor of a key (pthread_key_create(3)).

use crate::backend::{self, Backend};
use crate::outside::original;
use crate::state::{self, ThreadState, WATCHED};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

type Create = extern "C" fn(*mut u32, extern "C" fn(*mut c_void)) -> i32;
type Set = extern "C" fn(u32, *const c_void) -> i32;

/// The key and one; 0 for none yet.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Has the end of the calling thread noticed. Where that is not possible the next user of its stack finds what it held.
#[inline]
pub(crate) fn watch(state: &ThreadState) {
    if state.state.load(Ordering::Relaxed) & WATCHED == 0 && backend::current() == Backend::User {
        begin(state);
    }
}

#[cold]
fn begin(state: &ThreadState) {
    state.state.fetch_or(WATCHED, Ordering::Relaxed);
    let Some(key) = key() else { return };
    let set = original(b"pthread_setspecific");
    if set != 0 {
        let function = core::ptr::with_exposed_provenance::<()>(set);
        // SAFETY: the C library's function of this name has this type (POSIX).
        let function = unsafe { core::mem::transmute::<*const (), Set>(function) };
        // It fails without memory only.
        let _ = function(key, core::ptr::from_ref(state).cast());
    }
}

fn key() -> Option<u32> {
    let known = KEY.load(Ordering::Acquire);
    if known != 0 {
        return Some(known - 1);
    }
    let create = original(b"pthread_key_create");
    if create == 0 {
        return None;
    }
    let function = core::ptr::with_exposed_provenance::<()>(create);
    // SAFETY: the C library's function of this name has this type (POSIX).
    let function = unsafe { core::mem::transmute::<*const (), Create>(function) };
    let mut fresh = 0;
    if function(&mut fresh, at_end) != 0 {
        return None;
    }
    // Another thread may have come first: then its key serves, and ours is never set.
    let stored = KEY.compare_exchange(0, fresh + 1, Ordering::AcqRel, Ordering::Acquire);
    Some(stored.map_or_else(|other| other - 1, |_| fresh))
}

extern "C" fn at_end(_: *mut c_void) {
    // The mask stays: the thread takes no more of them.
    state::give_back(state::current());
}
