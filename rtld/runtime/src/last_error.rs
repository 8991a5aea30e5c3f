//! `dlerror`(3): the last error of each thread, in memory of the loader's own. Each function works inside a section: a handler
//! that asks for the error too finds a whole one.

use crate::threads;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;
use rtld_link::fallible::{try_box, try_extend, try_push};
use sigblock::section;

/// A thread's last error.
struct LastError {
    /// The text with its NUL; empty when the memory for it was missing.
    text: Vec<u8>,
    /// It was handed out: the next question finds nothing, and the one after an error frees it.
    told: bool,
    /// The thread's innermost catch of glibc's exceptions; 0 for none. It is here because every thread that may have one
    /// has a record.
    catch: usize,
}

struct Collector<'a>(&'a mut Vec<u8>);

impl Write for Collector<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        try_extend(self.0, text.as_bytes()).map_err(|_| fmt::Error)
    }
}

const NO_MEMORY: &CStr = c"out of memory";

fn current() -> Option<&'static mut LastError> {
    let address = threads::error_slot().load(Ordering::Relaxed);
    let error = core::ptr::with_exposed_provenance_mut::<LastError>(address);
    // SAFETY: null, or a box that set() leaked for this thread; only this thread touches it.
    unsafe { error.as_mut() }
}

/// Frees the last error of a thread that has ended.
///
/// # Safety
/// `control` must be the control block of a thread that was initialised and does not run.
pub unsafe fn discard(control: usize) {
    let address = threads::error_slot_of(control).swap(0, Ordering::Relaxed);
    if address != 0 {
        let error = core::ptr::with_exposed_provenance_mut::<LastError>(address);
        // SAFETY: a box that set() leaked for this thread.
        drop(unsafe { Box::from_raw(error) });
    }
}

/// Makes a text the calling thread's last error.
pub fn set(message: fmt::Arguments<'_>) {
    section::inside(|| replace(message));
}

fn replace(message: fmt::Arguments<'_>) {
    let mut text = Vec::new();
    let written = Collector(&mut text).write_fmt(message).is_ok() && try_push(&mut text, 0).is_ok();
    if !written {
        text = Vec::new();
    }
    // Without memory even for this the caller sees the error before, or a failure without a text.
    let Ok(error) = try_box(LastError { text, told: false, catch: catch() }) else { return };
    let old = current().map(core::ptr::from_mut);
    // One store, and the old error is freed after it: the child of a fork that happens in between finds an error that is
    // whole, and frees it when the thread's stack is used again.
    threads::error_slot().store(Box::into_raw(error).expose_provenance(), Ordering::Release);
    if let Some(old) = old {
        // SAFETY: a box that this function leaked for this thread before, and that the slot led to until now.
        drop(unsafe { Box::from_raw(old) });
    }
}

/// The calling thread's innermost catch; 0 for none.
pub fn catch() -> usize {
    current().map_or(0, |error| error.catch)
}

/// Notes the calling thread's innermost catch. Without memory for its first one there is none.
pub fn set_catch(catch: usize) {
    section::inside(|| {
        if let Some(error) = current() {
            error.catch = catch;
        } else if catch != 0
            && let Ok(error) = try_box(LastError { text: Vec::new(), told: true, catch })
        {
            threads::error_slot().store(Box::into_raw(error).expose_provenance(), Ordering::Release);
        }
    });
}

/// Forgets the calling thread's last error: something else is being asked now.
pub fn clear() {
    section::inside(|| {
        if let Some(error) = current() {
            error.told = true;
        }
    });
}

/// The calling thread's last error, once; null if there was none since the last question.
pub fn take() -> *const c_char {
    section::inside(|| match current() {
        Some(error) if !error.told => {
            error.told = true;
            text(error).as_ptr()
        }
        _ => core::ptr::null(),
    })
}

/// The calling thread's last error without marking it as told; for the C library's own way of passing it on.
pub fn peek() -> &'static CStr {
    section::inside(|| {
        current().map_or(NO_MEMORY, |error| {
            error.told = true;
            text(error)
        })
    })
}

fn text(error: &'static LastError) -> &'static CStr {
    CStr::from_bytes_until_nul(&error.text).unwrap_or(NO_MEMORY)
}
