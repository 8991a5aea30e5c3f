//! The `syscall` instruction, and nothing else. Callers state why their arguments are valid.

use crate::Errno;
use core::arch::asm;

/// Makes a system call with up to six arguments and splits its result.
///
/// # Safety
/// The call's effect on memory must be sound: pointers passed to the kernel must be valid for what
/// this call does with them, and mappings in use must not be changed under their users.
#[inline]
pub(crate) unsafe fn call(number: u32, arguments: [usize; 6]) -> Result<usize, Errno> {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the instruction clobbers rcx and r11 only, which are named; the rest is the caller's promise.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c,
             in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if (-4095..0).contains(&result) { Err(Errno::from_result(result)) } else { Ok(result as usize) }
}

/// Makes a system call again and again until no signal interrupts it. Not for close(2), which ends the descriptor also then.
///
/// # Safety
/// As [`call`]; the arguments must be good for more than one time.
pub(crate) unsafe fn call_again(number: u32, arguments: [usize; 6]) -> Result<usize, Errno> {
    loop {
        // SAFETY: the caller's promise.
        match unsafe { call(number, arguments) } {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
