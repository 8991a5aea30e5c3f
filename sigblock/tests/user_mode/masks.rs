//! The program's mask, whatever comes in the middle of what changes, saves or gives it back.

use crate::notes::*;
use crate::world::*;
use libc::{SIGSEGV, SIGUSR1, SIGUSR2, SIGWINCH};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

type Change = unsafe extern "C" fn(c_int, *const u64, *mut u64) -> c_int;

const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

extern "C" fn send_another(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    send(SIGUSR1);
}

/// A signal is put away inside the handler of a fault, which has a mask of its own.
pub(crate) fn in_a_handler_that_passes() {
    start("user");
    handle(SIGUSR1, note, 0);
    // SAFETY: all zero is a sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = send_another as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: a set to fill.
    unsafe { libc::sigaddset(&mut action.sa_mask, SIGUSR2) };
    let set: SetAction = replaced("sigaction");
    // SAFETY: a whole structure.
    assert_eq!(unsafe { set(SIGSEGV, &action, std::ptr::null_mut()) }, 0);
    let change: Change = replaced("sigprocmask");
    for asks in [false, true] {
        enter();
        send(SIGSEGV);
        let mut old = 0;
        // SAFETY: sets of 8 bytes.
        assert_eq!((asks && unsafe { change(libc::SIG_BLOCK, &0, &mut old) } != 0, old), (false, 0));
        leave();
        assert_eq!((RUNS.swap(0, SeqCst), word(), kernel_mask()), (1, 0, 0));
    }
}

/// What the kernel still has when the mask is lent comes at once, and must not close the mask again.
pub(crate) fn lent_with_more_waiting() {
    start("user");
    for signal in [SIGUSR1, SIGUSR2, SIGWINCH] {
        handle(signal, note, 0);
    }
    enter();
    [SIGUSR1, SIGUSR2, SIGWINCH].into_iter().for_each(send);
    let get: unsafe extern "C" fn(*mut libc::ucontext_t) -> c_int = replaced("getcontext");
    // SAFETY: all zero is a context to fill.
    let mut context: libc::ucontext_t = unsafe { std::mem::zeroed() };
    // SAFETY: a context to fill, which nobody jumps to.
    assert_eq!(unsafe { get(&mut context) }, 0);
    // SAFETY: sets of 8 bytes at least.
    let saved = unsafe { (&raw const context.uc_sigmask).cast::<u64>().read() };
    assert_eq!((saved, runs()), (0, 0));
    leave();
    assert_eq!((runs(), kernel_mask()), (3, 0));
}

/// A jump to a context sets its mask, also inside a section that gives one back.
pub(crate) fn of_a_context() {
    start("user");
    handle(SIGUSR1, note, 0);
    let get: unsafe extern "C" fn(*mut libc::ucontext_t) -> c_int = replaced("getcontext");
    let swap: unsafe extern "C" fn(*mut libc::ucontext_t, *const libc::ucontext_t) -> c_int = replaced("swapcontext");
    static JUMPED: AtomicBool = AtomicBool::new(false);
    // SAFETY: all zero is a context to fill.
    let (mut here, mut there): (libc::ucontext_t, libc::ucontext_t) = unsafe { std::mem::zeroed() };
    extern "C" fn jumped() {
        JUMPED.store(true, SeqCst);
        leave();
        assert_eq!((runs(), kernel_mask()), (1, bit(SIGUSR2)));
        std::process::exit(0);
    }
    let mut stack = vec![0_u8; 1 << 18];
    // SAFETY: a context to fill.
    unsafe { get(&mut there) };
    there.uc_stack.ss_sp = stack.as_mut_ptr().cast();
    there.uc_stack.ss_size = stack.len();
    // SAFETY: a whole context with a stack of its own.
    unsafe { libc::makecontext(&mut there, jumped, 0) };
    // SAFETY: the set has 8 bytes at least.
    unsafe { (&raw mut there.uc_sigmask).cast::<u64>().write(bit(SIGUSR2)) };
    enter();
    send(SIGUSR1);
    // SAFETY: whole contexts.
    unsafe { swap(&mut here, &there) };
    unreachable!();
}

/// Signals come all the time while a section's code changes the mask and looks at it.
pub(crate) fn changed_under_fire() {
    start("user");
    handle(SIGUSR1, note, 0);
    let change: Change = replaced("sigprocmask");
    // SAFETY: numbers only.
    let (process, target) = unsafe { (libc::getpid(), libc::gettid()) };
    static DONE: AtomicBool = AtomicBool::new(false);
    let sender = std::thread::spawn(move || {
        while !DONE.load(SeqCst) {
            // SAFETY: numbers only.
            unsafe { libc::syscall(libc::SYS_tgkill, process, target, SIGUSR1) };
        }
    });
    let set = bit(SIGUSR2);
    let mut old = 0;
    let mut rounds = 0;
    while runs() < 2_000 {
        enter();
        // SAFETY: sets of 8 bytes.
        unsafe { change(libc::SIG_BLOCK, &set, &mut old) };
        assert_eq!(old, 0, "round {rounds}: the mask before");
        // SAFETY: as above.
        unsafe { change(libc::SIG_BLOCK, std::ptr::null(), &mut old) };
        assert_eq!(old, set, "round {rounds}: the mask inside");
        leave();
        assert_eq!(kernel_mask(), set, "round {rounds}: the mask after the end");
        // SAFETY: as above.
        unsafe { change(libc::SIG_SETMASK, &0, std::ptr::null_mut()) };
        rounds += 1;
    }
    DONE.store(true, SeqCst);
    sender.join().unwrap();
}
