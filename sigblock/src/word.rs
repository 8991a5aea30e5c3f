//! The word: 32 bits, of which the low four are flags and the rest counts nested sections (FreeBSD's sigfastblock(2)).
//!
//! Only the owning thread writes it, so each change is one plain read-modify-write instruction: it cannot be torn by a
//! signal, and no other processor writes. Another thread that reads it must order its read by itself (membarrier(2)).
//!
//! On aarch64 it is an exclusive load and store, which a signal in between makes fail and try again.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Added for each section.
pub const STEP: u32 = 0x10;
/// The bits that are no count.
pub const FLAGS: u32 = 0xf;
/// A signal waits for the end of the section.
pub const PENDING: u32 = 1;

/// Raises the calling thread's word. What follows stays behind it.
///
/// # Safety
/// `word` must be the calling thread's own word.
#[inline(always)]
pub unsafe fn enter(word: *const AtomicU32) {
    // SAFETY: one instruction on the word that the caller owns; as it may touch memory, the compiler moves nothing
    // across it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("add dword ptr [{word}], {step}", word = in(reg) word, step = const STEP, options(nostack))
    };
    // SAFETY: as above, as one instruction to any signal.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            include_str!("word/aarch64_enter.s"),
            word = in(reg) word,
            fresh = out(reg) _,
            failed = out(reg) _,
            step = const STEP,
            options(nostack, preserves_flags)
        );
    }
}

/// Lowers the calling thread's word. What came before stays before it. Gives what is left: exactly [`PENDING`] if a signal
/// waits for this end. Whatever marks the word does so before it is lowered to a count of 0, so the read comes late enough.
///
/// # Safety
/// `word` must be the calling thread's own word, raised by `enter`.
#[inline(always)]
pub unsafe fn leave(word: *const AtomicU32) -> u32 {
    // SAFETY: as enter.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("sub dword ptr [{word}], {step}", word = in(reg) word, step = const STEP, options(nostack))
    };
    // SAFETY: as enter.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            include_str!("word/aarch64_leave.s"),
            word = in(reg) word,
            fresh = out(reg) _,
            failed = out(reg) _,
            step = const STEP,
            options(nostack, preserves_flags)
        );
    }
    // SAFETY: the caller's word.
    unsafe { (*word).load(Ordering::Relaxed) }
}

/// Whether a word says that its thread is inside a section.
pub fn is_raised(word: &AtomicU32) -> bool {
    word.load(Ordering::Acquire) & !FLAGS != 0
}

/// How many sections a word counts.
pub fn count(word: u32) -> u32 {
    word / STEP
}

/// Stores the stack pointer: which frames are inside a section that is open now.
#[inline(always)]
pub fn note_stack(place: &AtomicUsize) {
    // SAFETY: one store to a word that is borrowed.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("mov qword ptr [{place}], rsp", place = in(reg) place, options(nostack, preserves_flags))
    };
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("mov {now}, sp", "str {now}, [{place}]", now = out(reg) _, place = in(reg) place, options(nostack, preserves_flags))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_nest_and_flags_are_no_count() {
        let word = AtomicU32::new(0);
        // SAFETY: the word is this thread's.
        unsafe { enter(&word) };
        assert!(is_raised(&word));
        word.fetch_or(PENDING, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { enter(&word) };
        assert_eq!(word.load(Ordering::Relaxed), 0x21);
        // SAFETY: as above.
        assert_eq!(unsafe { leave(&word) }, 0x11);
        // SAFETY: as above.
        assert_eq!(unsafe { leave(&word) }, PENDING);
        assert!(!is_raised(&word));
    }

    #[test]
    fn the_stack_pointer_is_near() {
        let place = AtomicUsize::new(0);
        note_stack(&place);
        let here = (&raw const place).addr();
        assert!(here.abs_diff(place.load(Ordering::Relaxed)) < 4096);
    }
}
