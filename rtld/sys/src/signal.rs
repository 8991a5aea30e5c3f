//! Signals as the kernel knows them: masks and actions in its own forms, signals sent to oneself, and the way back from a
//! handler. What a program may see of this is decided elsewhere.

use crate::Errno;
use crate::call::call;
use core::arch::global_asm;
use core::ffi::c_void;
use linux_raw_sys::general as kernel;

/// A set of signals: bit `number - 1`, as the kernel has it.
pub type Mask = u64;

/// Size of the kernel's set.
const SIZE: usize = size_of::<Mask>();

/// Highest signal number.
pub const LAST: i32 = 64;

/// What the kernel does when a signal is delivered (`struct kernel_sigaction`).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Action {
    /// SIG_DFL (0), SIG_IGN (1) or a function.
    pub handler: usize,
    /// SA_ flags.
    pub flags: u64,
    /// Where a handler returns to.
    pub restorer: usize,
    /// Blocked while the handler runs.
    pub mask: Mask,
}

/// `siginfo_t`: 128 bytes of which the kernel fills what the code asks for.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Information {
    /// Number.
    pub signal: i32,
    /// errno, unused by the kernel.
    pub error: i32,
    /// SI_USER, SI_QUEUE, ...
    pub code: i32,
    /// Unused.
    pub gap: i32,
    /// Sender's process, for SI_USER, SI_TKILL and SI_QUEUE.
    pub process: i32,
    /// Sender's user.
    pub user: u32,
    /// Value, for SI_QUEUE.
    pub value: usize,
    /// What other codes have.
    pub rest: [u64; 12],
}

impl Information {
    /// All zero.
    pub const EMPTY: Information =
        Information { signal: 0, error: 0, code: 0, gap: 0, process: 0, user: 0, value: 0, rest: [0; 12] };
}

/// SI_QUEUE: sent by sigqueue(3).
pub const QUEUED: i32 = -1;

const _: () = assert!(size_of::<Information>() == 128);

/// How a mask is changed: SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// These too.
    Block,
    /// Not these.
    Unblock,
    /// These and no others.
    Set,
}

/// Changes the calling thread's mask; gives the one before.
pub fn change_mask(how: How, set: Mask) -> Result<Mask, Errno> {
    let how = match how {
        How::Block => kernel::SIG_BLOCK,
        How::Unblock => kernel::SIG_UNBLOCK,
        How::Set => kernel::SIG_SETMASK,
    };
    let mut old: Mask = 0;
    let arguments = [how as usize, &raw const set as usize, &raw mut old as usize, SIZE, 0, 0];
    // SAFETY: both sets are ours and of the size that is passed.
    unsafe { call(kernel::__NR_rt_sigprocmask, arguments) }?;
    Ok(old)
}

/// The calling thread's mask.
pub fn mask() -> Mask {
    let mut old: Mask = 0;
    // SAFETY: the set is ours and of the size that is passed; without a new set nothing changes.
    let _ = unsafe { call(kernel::__NR_rt_sigprocmask, [0, 0, &raw mut old as usize, SIZE, 0, 0]) };
    old
}

/// Signals that are pending for the calling thread or the process.
pub fn pending() -> Mask {
    let mut set: Mask = 0;
    // SAFETY: the set is ours and of the size that is passed.
    let _ = unsafe { call(kernel::__NR_rt_sigpending, [&raw mut set as usize, SIZE, 0, 0, 0, 0]) };
    set
}

/// Takes a pending signal of a set, if there is one; does not wait.
pub fn take_pending(set: Mask) -> Option<Information> {
    let mut information = Information::EMPTY;
    let timeout = kernel::timespec { tv_sec: 0, tv_nsec: 0 };
    let (set, timeout) = (&raw const set as usize, &raw const timeout as usize);
    let arguments = [set, &raw mut information as usize, timeout, SIZE, 0, 0];
    // SAFETY: the structures are ours and have the kernel's form.
    unsafe { call(kernel::__NR_rt_sigtimedwait, arguments) }.ok().map(|_| information)
}

/// Gives a signal another action (if there is one); gives the one before.
///
/// # Safety
/// A handler must be a function that may run whenever the signal comes, and the restorer [`restorer`].
pub unsafe fn set_action(signal: i32, action: Option<&Action>) -> Result<Action, Errno> {
    let mut old = Action::default();
    let fresh = action.map_or(0, |action| core::ptr::from_ref(action) as usize);
    let arguments = [signal as usize, fresh, &raw mut old as usize, SIZE, 0, 0];
    // SAFETY: the structures have the kernel's form; the rest is the caller's promise.
    unsafe { call(kernel::__NR_rt_sigaction, arguments) }?;
    Ok(old)
}

/// Queues a signal to the calling thread, with all that a receiver sees of it.
pub fn queue_to_myself(signal: i32, information: &Information) -> Result<(), Errno> {
    let (process, thread) = (crate::process::id() as usize, crate::thread::id() as usize);
    let arguments = [process, thread, signal as usize, core::ptr::from_ref(information) as usize, 0, 0];
    // SAFETY: the kernel reads a siginfo_t.
    unsafe { call(kernel::__NR_rt_tgsigqueueinfo, arguments) }.map(drop)
}

/// Queues a signal to the process.
pub fn queue_to_process(signal: i32, information: &Information) -> Result<(), Errno> {
    let arguments =
        [crate::process::id() as usize, signal as usize, core::ptr::from_ref(information) as usize, 0, 0, 0];
    // SAFETY: the kernel reads a siginfo_t.
    unsafe { call(kernel::__NR_rt_sigqueueinfo, arguments) }.map(drop)
}

/// SI_TKILL: sent to one thread.
pub const TO_THREAD: i32 = -6;

/// Sends a signal to the process.
pub fn send_to_process(signal: i32) -> Result<(), Errno> {
    // SAFETY: no memory is touched.
    unsafe { call(kernel::__NR_kill, [crate::process::id() as usize, signal as usize, 0, 0, 0, 0]) }.map(drop)
}

/// Sends a signal to the calling thread.
pub fn send_to_myself(signal: i32) -> Result<(), Errno> {
    let (process, thread) = (crate::process::id() as usize, crate::thread::id() as usize);
    // SAFETY: no memory is touched.
    unsafe { call(kernel::__NR_tgkill, [process, thread, signal as usize, 0, 0, 0]) }.map(drop)
}

/// Where the calling thread's alternate signal stack is: start and size; None if it has none.
pub fn alternate_stack() -> Option<(usize, usize)> {
    let mut stack = kernel::sigaltstack { ss_sp: core::ptr::null_mut::<c_void>(), ss_flags: 0, ss_size: 0 };
    // SAFETY: the kernel fills a stack_t.
    unsafe { call(kernel::__NR_sigaltstack, [0, &raw mut stack as usize, 0, 0, 0, 0]) }.ok()?;
    (stack.ss_flags & kernel::SS_DISABLE as i32 == 0).then_some((stack.ss_sp as usize, stack.ss_size as usize))
}

/// Registers the calling thread's word, and kin: the commands of the fast sigblock patch are those of FreeBSD's
/// sigfastblock(2), and one more. On Linux an option of prctl(2), which other kernels refuse; never FreeBSD's call number,
/// which means something else here.
///
/// # Safety
/// A word must stay mapped until the thread ends.
pub unsafe fn fast_block(command: usize, argument: usize) -> Result<usize, Errno> {
    #[cfg(not(target_os = "freebsd"))]
    let (number, arguments) = (kernel::__NR_prctl, [PR_SIGFASTBLOCK, command, argument, 0, 0, 0]);
    #[cfg(target_os = "freebsd")]
    let (number, arguments) = (SYS_SIGFASTBLOCK, [command, argument, 0, 0, 0, 0]);
    // SAFETY: the caller's promise.
    unsafe { call(number, arguments) }
}

/// "SFB1".
#[cfg(not(target_os = "freebsd"))]
const PR_SIGFASTBLOCK: usize = 0x5346_4231;
/// FreeBSD 13.0 and later.
#[cfg(target_os = "freebsd")]
const SYS_SIGFASTBLOCK: u32 = 573;

/// Whether a seccomp filter is in force (or cannot be asked about, which only a filter can cause).
pub fn is_filtered() -> bool {
    let arguments = [linux_raw_sys::prctl::PR_GET_SECCOMP as usize, 0, 0, 0, 0, 0];
    // SAFETY: no memory is touched.
    let mode = unsafe { call(kernel::__NR_prctl, arguments) };
    mode != Ok(0)
}

/// The code a handler returns to. Debuggers and unwinders know it by its bytes and by its name; its frame description
/// says where the kernel left each register (`struct rt_sigframe`: the ucontext_t is at the stack pointer).
pub fn restorer() -> usize {
    __restore_rt as *const () as usize
}

unsafe extern "C" {
    fn __restore_rt();
}

global_asm!(
    r#"
    .macro sigblock_saved register, low, high
    # DW_CFA_expression: the register is at stack pointer + offset.
    .cfi_escape 0x10, \register, 3, 0x77, \low, \high
    .endm

    .text
    .p2align 4
    .cfi_startproc
    .cfi_signal_frame
    # DW_CFA_def_cfa_expression: the interrupted stack pointer, at stack pointer + 160.
    .cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06
    sigblock_saved 8, 0xa8, 0x00
    sigblock_saved 9, 0xb0, 0x00
    sigblock_saved 10, 0xb8, 0x00
    sigblock_saved 11, 0xc0, 0x00
    sigblock_saved 12, 0xc8, 0x00
    sigblock_saved 13, 0xd0, 0x00
    sigblock_saved 14, 0xd8, 0x00
    sigblock_saved 15, 0xe0, 0x00
    sigblock_saved 5, 0xe8, 0x00
    sigblock_saved 4, 0xf0, 0x00
    sigblock_saved 6, 0xf8, 0x00
    sigblock_saved 3, 0x80, 0x01
    sigblock_saved 1, 0x88, 0x01
    sigblock_saved 0, 0x90, 0x01
    sigblock_saved 2, 0x98, 0x01
    sigblock_saved 7, 0xa0, 0x01
    sigblock_saved 16, 0xa8, 0x01
    # Unwinders look at the byte before a return address.
    nop
    .globl __restore_rt
    .hidden __restore_rt
    .type __restore_rt,@function
__restore_rt:
    mov     rax, 15
    syscall
    .size __restore_rt, . - __restore_rt
    .cfi_endproc
    .purgem sigblock_saved
"#
);
