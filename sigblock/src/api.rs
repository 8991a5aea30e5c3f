//! What programs may call by name (include/sigblock.h): sections of their own, on the calling thread's word.
//!
//! The feature `exports` gives the functions their names: the loader has it. libsigblock, whose names may lead to a loader's
//! functions, has names of its own.

use crate::backend::{self, Backend};
use crate::state::REGISTERED;
use crate::{hold, outside, section, state, thread_end};
use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering;
use linux_raw_sys::errno::{ENOMEM, EPERM};
use rtld_sys::signal::Mask;

/// Enters a section; sections nest.
#[cfg_attr(feature = "exports", unsafe(no_mangle))]
pub extern "C" fn sigblock_enter() {
    let state = state::current();
    section::enter(state);
    let own = state.own.load(Ordering::Relaxed);
    state.own.store(own.wrapping_add(1), Ordering::Relaxed);
    if own == 0 {
        thread_end::watch(state);
    }
}

/// Leaves a section. At the end of the outermost one what was held is delivered before this returns.
#[cfg_attr(feature = "exports", unsafe(no_mangle))]
pub extern "C" fn sigblock_leave() {
    let state = state::current();
    // One too many, or the section was ended by an exec that failed: there is nothing to leave.
    let Some(own) = state.own.load(Ordering::Relaxed).checked_sub(1) else { return };
    state.own.store(own, Ordering::Relaxed);
    section::leave(state);
}

/// Tells the back end of the calling thread's word before the thread's first section, which else does so: for threads that
/// write the word by themselves. 0, or -1 and errno where the kernel has no room for it.
#[cfg_attr(feature = "exports", unsafe(no_mangle))]
pub extern "C" fn sigblock_register() -> c_int {
    let state = state::current();
    if backend::current() != Backend::Kernel || state.state.load(Ordering::Relaxed) & REGISTERED != 0 {
        return 0;
    }
    if backend::register(state) { 0 } else { outside::set_error(ENOMEM as c_int) }
}

/// The calling thread ends, outside sections: the back end forgets its word. Signals to the process that it still holds go to the
/// other threads. 0, or -1 and errno EBUSY inside a section that the kernel knows.
#[cfg_attr(feature = "exports", unsafe(no_mangle))]
pub extern "C" fn sigblock_release() -> c_int {
    let state = state::current();
    if state.state.load(Ordering::Relaxed) & REGISTERED == 0 {
        state::give_back(state);
        return 0;
    }
    match backend::unregister(state) {
        Ok(()) => 0,
        Err(error) => outside::set_error(c_int::from(error.0)),
    }
}

/// The calling thread's word.
#[cfg_attr(feature = "exports", unsafe(no_mangle))]
pub extern "C" fn sigblock_word() -> *const u32 {
    state::current().word.as_ptr()
}

/// The name of the back end.
#[cfg_attr(feature = "exports", unsafe(no_mangle))]
pub extern "C" fn sigblock_backend() -> *const c_char {
    let name = match backend::current() {
        Backend::Kernel => c"kernel",
        Backend::User => c"user",
        Backend::Sigprocmask => c"sigprocmask",
        Backend::Off => c"off",
    };
    name.as_ptr()
}

/// Changes which signals the sections of this process hold (null: asks only), and gives those before. What can never be
/// held is left out. 0, or -1 and errno EPERM where a seccomp filter stands between us and the kernel that holds them.
///
/// # Safety
/// Each pointer must be null or point to a sigset_t.
#[cfg_attr(feature = "exports", unsafe(no_mangle))]
pub unsafe extern "C" fn sigblock_mask(fresh: *const Mask, old: *mut Mask) -> c_int {
    let before = if fresh.is_null() {
        hold::current()
    } else if !backend::can_change_hold() {
        return outside::set_error(EPERM as c_int);
    } else {
        // SAFETY: the caller's promise; the kernel's part of a sigset_t comes first.
        let before = hold::set(unsafe { fresh.read_unaligned() });
        if backend::current() == Backend::Kernel {
            backend::tell_mask();
        }
        before
    };
    if !old.is_null() {
        // SAFETY: the caller's promise.
        unsafe { old.write_unaligned(before) };
    }
    0
}

/// `struct sigblock_counts`.
#[repr(C)]
pub struct SectionCounts {
    /// Outermost sections, if they are counted (LD_DEBUG=sigblock).
    sections: u64,
    /// Signals that waited for a section's end.
    held: u64,
}

/// What was counted so far, in all threads.
///
/// # Safety
/// `counts` must point to a struct sigblock_counts.
#[cfg_attr(feature = "exports", unsafe(no_mangle))]
pub unsafe extern "C" fn sigblock_counts(counts: *mut SectionCounts) {
    let now = backend::counts();
    // SAFETY: the caller's promise.
    unsafe { counts.write(SectionCounts { sections: now.sections, held: now.held }) };
}
