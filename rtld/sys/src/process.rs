//! The process itself: its end, its name, its ids.

use crate::Errno;
use crate::call::call;
use core::ffi::CStr;
use linux_raw_sys::general as kernel;
use linux_raw_sys::prctl as option;

/// Ends all threads of the process with an exit status.
pub fn exit(status: i32) -> ! {
    loop {
        // SAFETY: exit_group takes a number and does not return.
        let _ = unsafe { call(kernel::__NR_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Ends the process by SIGABRT, whatever its handlers and mask are; the last resort of a bug of ours.
pub fn abort() -> ! {
    // SAFETY: no memory is touched.
    let process = unsafe { call(kernel::__NR_getpid, [0; 6]) }.unwrap_or(0);
    // SAFETY: no memory is touched.
    let thread = unsafe { call(kernel::__NR_gettid, [0; 6]) }.unwrap_or(0);
    let signal = kernel::SIGABRT as usize;
    // SAFETY: no memory is touched.
    let _ = unsafe { call(kernel::__NR_tgkill, [process, thread, signal, 0, 0, 0]) };
    exit(127)
}

/// The process id.
pub fn id() -> i32 {
    // SAFETY: getpid has no arguments and cannot fail.
    unsafe { call(kernel::__NR_getpid, [0; 6]) }.unwrap_or(0) as i32
}

/// Sets the calling thread's name (the kernel keeps 15 bytes), as exec(2) does for a program.
pub fn set_name(name: &CStr) -> Result<(), Errno> {
    let arguments = [option::PR_SET_NAME as usize, name.as_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the kernel reads a C string.
    unsafe { call(kernel::__NR_prctl, arguments) }.map(drop)
}
