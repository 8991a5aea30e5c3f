//! The calling thread: thread pointer, the kernel's per-thread registrations.

use crate::Errno;
use crate::call::call;
use core::arch::asm;
use linux_raw_sys::general as kernel;

const ARCH_SET_FS: usize = 0x1002;
/// The signature that glibc (and everybody after it) registers rseq areas with on x86.
const RSEQ_SIGNATURE: usize = 0x5305_3053;

/// Sets the thread pointer (fs base).
///
/// # Safety
/// `address` must be a thread control block whose first word is its own address.
pub unsafe fn set_pointer(address: usize) -> Result<(), Errno> {
    // SAFETY: the caller made the block.
    unsafe { call(kernel::__NR_arch_prctl, [ARCH_SET_FS, address, 0, 0, 0, 0]) }.map(drop)
}

/// The thread pointer, as the psABI keeps it in the first word of the thread control block.
///
/// # Safety
/// The thread pointer must have been set.
#[inline(always)]
pub unsafe fn pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads the word at fs:0, which the caller promises to exist.
    unsafe { asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}

/// Where the kernel clears the thread id at exit; returns the thread id.
///
/// # Safety
/// `address` must stay writable as long as the thread lives.
pub unsafe fn set_tid_address(address: usize) -> usize {
    // SAFETY: the caller's promise; the call cannot fail.
    unsafe { call(kernel::__NR_set_tid_address, [address, 0, 0, 0, 0, 0]) }.unwrap_or(0)
}

/// Registers the list of robust mutexes.
///
/// # Safety
/// `head` must be a robust_list_head of `length` bytes that lives as long as the thread.
pub unsafe fn set_robust_list(head: usize, length: usize) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    unsafe { call(kernel::__NR_set_robust_list, [head, length, 0, 0, 0, 0]) }.map(drop)
}

/// Registers a restartable-sequences area.
///
/// # Safety
/// `area` must be aligned to 32, `length` bytes long and live as long as the thread.
pub unsafe fn register_rseq(area: usize, length: usize) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    unsafe { call(kernel::__NR_rseq, [area, length, 0, RSEQ_SIGNATURE, 0, 0]) }.map(drop)
}

/// The thread id.
pub fn id() -> i32 {
    // SAFETY: gettid has no arguments and cannot fail.
    unsafe { call(kernel::__NR_gettid, [0; 6]) }.unwrap_or(0) as i32
}

/// Sleeps for less than a second (nanosleep(2)), or until a signal comes.
pub fn rest(nanoseconds: usize) {
    let time = [0, nanoseconds];
    // SAFETY: the time is a timespec; nothing is written.
    let _ = unsafe { call(kernel::__NR_nanosleep, [time.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}

const MEMBARRIER_PRIVATE_EXPEDITED: usize = 8;
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: usize = 16;

/// Asks for the right to use [`barrier_in_all_threads`].
pub fn register_barrier() -> Result<(), Errno> {
    // SAFETY: no memory is touched.
    unsafe { call(kernel::__NR_membarrier, [MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0]) }.map(drop)
}

/// A full memory barrier in every running thread of the process (membarrier(2)).
pub fn barrier_in_all_threads() -> Result<(), Errno> {
    // SAFETY: no memory is touched.
    unsafe { call(kernel::__NR_membarrier, [MEMBARRIER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0]) }.map(drop)
}
