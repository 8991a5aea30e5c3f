//! What handlers saw.

use crate::world::word;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Handler runs.
pub static RUNS: AtomicUsize = AtomicUsize::new(0);
/// Handler runs inside a section.
pub static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// By run: the value of the signal.
pub static VALUES: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];
/// The last siginfo_t.
pub static LAST: std::sync::Mutex<[u8; 128]> = std::sync::Mutex::new([0; 128]);
/// The last mask in a context, or of a handler.
pub static MASK: AtomicUsize = AtomicUsize::new(0);
/// Where the last handler ran.
pub static STACK: AtomicUsize = AtomicUsize::new(0);

/// A handler that notes all it sees.
pub extern "C" fn note(_: c_int, information: *mut libc::siginfo_t, context: *mut c_void) {
    let run = RUNS.fetch_add(1, SeqCst);
    if word() >= 0x10 {
        INSIDE.fetch_add(1, SeqCst);
    }
    // SAFETY: a siginfo_t of 128 bytes.
    let bytes = unsafe { information.cast::<[u8; 128]>().read() };
    *LAST.lock().unwrap() = bytes;
    // SAFETY: the value of a queued signal.
    VALUES[run % 64].store(unsafe { (*information).si_value() }.sival_ptr as usize, SeqCst);
    // SAFETY: a ucontext_t.
    let mask = unsafe { context.byte_add(296).cast::<usize>().read() };
    MASK.store(mask, SeqCst);
    STACK.store((&raw const run).addr(), SeqCst);
}

/// Handler runs so far, of which none was inside.
pub fn runs() -> usize {
    assert_eq!(INSIDE.load(SeqCst), 0);
    RUNS.load(SeqCst)
}
