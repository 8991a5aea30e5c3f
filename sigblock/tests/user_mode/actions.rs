//! What the program sets is what it reads back, and has the effect it has without us.

use crate::notes::*;
use crate::world::*;
use libc::{SIGRTMIN, SIGUSR1, SIGUSR2};
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::SeqCst;

pub(crate) fn old_handler(signal: c_int) -> usize {
    // SAFETY: all zero is a sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let set: SetAction = replaced("sigaction");
    // SAFETY: a structure to fill.
    assert_eq!(unsafe { set(signal, std::ptr::null(), &mut action) }, 0);
    action.sa_sigaction
}

pub(crate) fn reset_hand() {
    start("user");
    handle(SIGUSR1, note, libc::SA_RESETHAND);
    enter();
    send(SIGUSR1);
    assert_eq!(old_handler(SIGUSR1), note as Handler as *const () as usize);
    leave();
    assert_eq!((runs(), old_handler(SIGUSR1)), (1, libc::SIG_DFL));
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        send(SIGUSR1);
        std::process::exit(0);
    }
    let status = wait(child);
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == SIGUSR1);
}

pub(crate) fn no_defer() {
    start("user");
    handle(SIGUSR1, note, libc::SA_NODEFER);
    enter();
    send(SIGUSR1);
    leave();
    assert_eq!((runs(), word()), (1, 0));
}

pub(crate) fn alternate_stack() {
    start("user");
    let mut memory = vec![0_u8; 65536];
    let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
    // SAFETY: the memory lives as long as the process of this case.
    unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) };
    handle(SIGUSR1, note, libc::SA_ONSTACK);
    enter();
    send(SIGUSR1);
    leave();
    assert_eq!(runs(), 1);
    let start = memory.as_ptr().addr();
    assert!((start..start + memory.len()).contains(&STACK.load(SeqCst)));
}

extern "C" fn step_over(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    RUNS.fetch_add(1, SeqCst);
    // The instruction pointer in the context: `ud2` has two bytes.
    // SAFETY: a ucontext_t.
    unsafe { *context.byte_add(168).cast::<usize>() += 2 };
}

pub(crate) fn fault() {
    start("user");
    handle(libc::SIGILL, step_over, 0);
    handle(SIGUSR1, note, 0);
    for held in [false, true] {
        enter();
        if held {
            send(SIGUSR1);
        }
        // SAFETY: the handler steps over it.
        unsafe { std::arch::asm!("ud2") };
        assert_eq!(RUNS.swap(0, SeqCst), 1);
        leave();
        assert_eq!((RUNS.swap(0, SeqCst), word()), (usize::from(held), 0));
    }
}

pub(crate) fn read_back() {
    start("user");
    let set: SetAction = replaced("sigaction");
    for (handler, flags) in [
        (note as *const () as usize, libc::SA_SIGINFO | libc::SA_RESTART),
        (libc::SIG_IGN, 0),
        (note as *const () as usize, libc::SA_RESETHAND | libc::SA_NODEFER),
        (libc::SIG_DFL, libc::SA_SIGINFO),
        (note as *const () as usize, 0),
    ] {
        // SAFETY: all zero is a sigaction.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        // SAFETY: a set to fill.
        unsafe { libc::sigaddset(&mut action.sa_mask, libc::SIGKILL) };
        // SAFETY: as above.
        unsafe { libc::sigaddset(&mut action.sa_mask, SIGUSR2) };
        // SAFETY: whole structures.
        assert_eq!(unsafe { set(SIGUSR1, &action, std::ptr::null_mut()) }, 0);
        // SAFETY: all zero is a sigaction.
        let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        assert_eq!(unsafe { set(SIGUSR1, std::ptr::null(), &mut old) }, 0);
        assert_eq!((old.sa_sigaction, old.sa_flags), (handler, flags | 0x0400_0000));
        // SAFETY: a set.
        let member = |signal| unsafe { libc::sigismember(&old.sa_mask, signal) };
        assert_eq!((member(SIGUSR2), member(libc::SIGKILL), member(SIGUSR1)), (1, 0, 0));
        let mut kernel = [0_usize; 4];
        // SAFETY: a kernel_sigaction to fill.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, SIGUSR1, 0, &raw mut kernel, 8) };
        assert_eq!(kernel[0] == handler, handler <= 1, "SIG_DFL and SIG_IGN never become ours, handlers do");
    }
    for signal in [0, 65, -1, 32, 33, libc::SIGKILL] {
        // SAFETY: all zero is a sigaction.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note as *const () as usize;
        // SAFETY: whole structures.
        assert_eq!(unsafe { set(signal, &action, std::ptr::null_mut()) }, -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
    }
}

pub(crate) fn mask_inside() {
    start("user");
    handle(SIGUSR1, note, 0);
    let change: unsafe extern "C" fn(c_int, *const u64, *mut u64) -> c_int = replaced("sigprocmask");
    enter();
    send(SIGUSR1);
    let (set, mut old) = (1_u64 << (SIGUSR2 - 1), u64::MAX);
    // SAFETY: sets of 8 bytes.
    assert_eq!(unsafe { change(libc::SIG_BLOCK, &set, &mut old) }, 0);
    assert_eq!(old, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { change(libc::SIG_SETMASK, std::ptr::null(), &mut old) }, 0);
    assert_eq!((old, runs()), (set, 0));
    leave();
    assert_eq!((kernel_mask(), runs()), (set, 1));
    // SAFETY: as above.
    assert_eq!(unsafe { change(17, &set, &mut old) }, -1);
}

pub(crate) fn ignored_meanwhile() {
    start("user");
    handle(SIGUSR1, note, 0);
    enter();
    send(SIGUSR1);
    let signal: extern "C" fn(c_int, usize) -> usize = replaced("signal");
    assert_eq!(signal(SIGUSR1, libc::SIG_IGN), note as *const () as usize);
    leave();
    assert_eq!((runs(), word()), (0, 0));
    handle(SIGUSR1, note, 0);
    send(SIGUSR1);
    assert_eq!(runs(), 1);
}

pub(crate) fn full_queue() {
    start("user");
    let real_time = SIGRTMIN() + 1;
    handle(real_time, note, 0);
    handle(SIGUSR1, note, 0);
    enter();
    queue(real_time, 5);
    // SAFETY: a whole structure.
    unsafe { libc::setrlimit(libc::RLIMIT_SIGPENDING, &libc::rlimit { rlim_cur: 0, rlim_max: 0 }) };
    leave();
    assert_eq!((runs(), VALUES[0].load(SeqCst), kernel_mask()), (1, 5, 0));
    enter();
    send(SIGUSR1);
    leave();
    assert_eq!(runs(), 2);
}
