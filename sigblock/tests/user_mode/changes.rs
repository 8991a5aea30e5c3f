//! Actions that are set in the middle of other changes: by handlers that pass, in children of forks; and before filters.

use crate::actions::old_handler;
use crate::notes::*;
use crate::world::*;
use libc::{SIGALRM, SIGRTMIN, SIGUSR1, SIGUSR2};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

extern "C" fn set_it_again(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    RUNS.fetch_add(1, SeqCst);
    handle(SIGUSR1, set_it_again, 0);
}

/// sigaction(2) may be called in any handler: one that sections do not hold comes in the middle of a change.
pub(crate) fn by_a_handler_that_passes() {
    start("user");
    let hold = 1_u64 << (SIGUSR2 - 1);
    // SAFETY: a set to read.
    unsafe { sigblock::api::sigblock_mask(&hold, std::ptr::null_mut()) };
    handle(SIGUSR1, set_it_again, 0);
    // SAFETY: numbers only.
    let (process, target) = unsafe { (libc::getpid(), libc::gettid()) };
    static DONE: AtomicBool = AtomicBool::new(false);
    let sender = std::thread::spawn(move || {
        while !DONE.load(SeqCst) {
            // SAFETY: numbers only.
            unsafe { libc::syscall(libc::SYS_tgkill, process, target, SIGUSR1) };
        }
    });
    while RUNS.load(SeqCst) < 2_000 {
        handle(SIGUSR2, note, 0);
    }
    DONE.store(true, SeqCst);
    sender.join().unwrap();
}

extern "C" fn set_in_the_child() {
    handle(SIGUSR1, note, 0);
}

/// A fork's child has no thread that could give the lock back, and its handlers set actions before anybody knows of the fork.
pub(crate) fn by_the_handlers_of_a_fork() {
    start("user");
    // SAFETY: a function for each child.
    assert_eq!(unsafe { libc::pthread_atfork(None, None, Some(set_in_the_child)) }, 0);
    std::thread::spawn(|| {
        prepare_thread();
        loop {
            handle(SIGUSR2, note, 0);
        }
    });
    let fork: extern "C" fn() -> i32 = replaced("fork");
    for _ in 0..500 {
        let child = fork();
        if child == 0 {
            // SAFETY: ends the child, whose other thread is not there.
            unsafe { libc::_exit(0) };
        }
        assert_eq!(wait(child), 0);
    }
}

/// The filter may forbid rt_sigaction(2), which SA_RESETHAND does without.
pub(crate) fn reset_under_a_strict_filter() {
    start("user");
    handle(SIGALRM, note, libc::SA_RESETHAND);
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let soon = libc::timeval { tv_sec: 0, tv_usec: 50_000 };
        let once = libc::itimerval { it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 }, it_value: soon };
        // SAFETY: a whole structure.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &once, std::ptr::null_mut()) };
        let prctl: unsafe extern "C" fn(c_int, ...) -> c_int = replaced("prctl");
        // SAFETY: numbers only.
        let strict = unsafe { prctl(libc::PR_SET_SECCOMP, 1) };
        while RUNS.load(SeqCst) == 0 {
            std::hint::spin_loop();
        }
        // SAFETY: numbers only.
        unsafe { libc::syscall(libc::SYS_exit, strict) };
    }
    assert_eq!(wait(child), 0);
    assert_eq!(old_handler(SIGALRM), note as Handler as *const () as usize);
}

fn ignore(signal: c_int) {
    let set: extern "C" fn(c_int, usize) -> usize = replaced("signal");
    assert_eq!(set(signal, libc::SIG_IGN), note as Handler as *const () as usize);
}

/// Who ignores a signal that is pending discards it (sigaction(2), POSIX), also one that was put away: here by the same thread and
/// by another one.
pub(crate) fn ignored_while_pending() {
    start("user");
    let change: unsafe extern "C" fn(c_int, *const u64, *mut u64) -> c_int = replaced("sigprocmask");
    let pending: unsafe extern "C" fn(*mut u64) -> c_int = replaced("sigpending");
    let (own, others) = (SIGRTMIN() + 1, SIGRTMIN() + 2);
    for signal in [own, others] {
        let set = 1_u64 << (signal - 1);
        handle(signal, note, 0);
        enter();
        queue_to_thread(signal, 1);
        // SAFETY: sets of 8 bytes.
        assert_eq!(unsafe { change(libc::SIG_BLOCK, &set, std::ptr::null_mut()) }, 0);
        leave();
        if signal == own {
            ignore(signal);
            let mut now = 0;
            // SAFETY: as above.
            assert_eq!((unsafe { pending(&mut now) }, now), (0, 0));
        } else {
            let other = move || {
                prepare_thread();
                ignore(signal);
            };
            std::thread::spawn(other).join().unwrap();
        }
        handle(signal, note, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { change(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) }, 0);
        assert_eq!(RUNS.load(SeqCst), 0);
        for (run, value) in [2, 3].into_iter().enumerate() {
            queue_to_thread(signal, value);
            assert_eq!((RUNS.load(SeqCst), VALUES[run].load(SeqCst)), (run + 1, value), "signal {signal}");
        }
        RUNS.store(0, SeqCst);
    }
}

extern "C" fn back_to_default(_: *mut c_void) -> c_int {
    let set: extern "C" fn(c_int, usize) -> usize = replaced("signal");
    c_int::from(set(SIGUSR1, libc::SIG_DFL) != note as Handler as *const () as usize)
}

/// A child that shares the memory, as helpers of clone(2) do, has actions of its own: the parent's handler is still reset.
pub(crate) fn reset_after_a_child_in_the_same_memory() {
    start("user");
    handle(SIGUSR1, note, libc::SA_RESETHAND);
    let mut stack = vec![0_u128; 1 << 14];
    let top = stack.as_mut_ptr_range().end.cast();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: a function, and a stack that outlives the child.
    let child = unsafe { libc::clone(back_to_default, top, flags, std::ptr::null_mut()) };
    assert_eq!(wait(child), 0);
    send(SIGUSR1);
    assert_eq!((runs(), old_handler(SIGUSR1)), (1, libc::SIG_DFL));
}
