//! When handlers run, in what order, with what they are given.

use crate::notes::*;
use crate::world::*;
use libc::{SIGRTMIN, SIGUSR1, SIGUSR2};
use std::ffi::c_int;
use std::sync::atomic::Ordering::SeqCst;

pub(crate) fn held_until_the_end() {
    start("user");
    handle(SIGUSR1, note, 0);
    send(SIGUSR1);
    assert_eq!(runs(), 1);
    enter();
    enter();
    send(SIGUSR1);
    assert_eq!((runs(), word()), (1, 0x21));
    leave();
    assert_eq!((runs(), word()), (1, 0x11));
    leave();
    assert_eq!((runs(), word()), (2, 0));
    enter();
    leave();
    assert_eq!((runs(), word()), (2, 0));
}

pub(crate) fn exact_value() {
    start("user");
    handle(SIGUSR1, note, 0);
    enter();
    send(SIGUSR1);
    enter();
    enter();
    leave();
    leave();
    assert_eq!((runs(), word()), (0, 0x11));
    leave();
    assert_eq!(runs(), 1);
}

pub(crate) fn order() {
    start("user");
    let real_time = SIGRTMIN() + 3;
    handle(SIGUSR1, note, 0);
    handle(real_time, note, 0);
    enter();
    for value in 0..25 {
        queue(real_time, value);
    }
    leave();
    assert_eq!(runs(), 25);
    assert!((0..25).all(|value| VALUES[value].load(SeqCst) == value));
    enter();
    for _ in 0..3 {
        send(SIGUSR1);
    }
    leave();
    assert_eq!(runs(), 26);
}

/// A marker goes to the thread too, behind what is queued there: the frame of each serves the one before it.
pub(crate) fn order_in_the_thread() {
    start("user");
    let real_time = SIGRTMIN() + 3;
    handle(real_time, note, 0);
    enter();
    (0..25).for_each(|value| queue_to_thread(real_time, value));
    leave();
    assert_eq!(runs(), 25);
    assert!((0..25).all(|value| VALUES[value].load(SeqCst) == value));
}

pub(crate) fn several_at_once() {
    start("user");
    let real_time = SIGRTMIN() + 3;
    handle(real_time, note, 0);
    let change: unsafe extern "C" fn(c_int, *const u64, *mut u64) -> c_int = replaced("sigprocmask");
    let set = 1_u64 << (real_time - 1);
    // SAFETY: sets of 8 bytes.
    unsafe { change(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
    (0..20).for_each(|value| queue(real_time, value));
    enter();
    // SAFETY: as above.
    unsafe { change(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) };
    assert_eq!(runs(), 0);
    (20..25).for_each(|value| queue(real_time, value));
    leave();
    assert_eq!(runs(), 25);
    assert!((0..25).all(|value| VALUES[value].load(SeqCst) == value));
    assert_eq!(kernel_mask(), 0);
}

pub(crate) fn same_siginfo() {
    start("user");
    handle(SIGUSR1, note, 0);
    // SAFETY: numbers only.
    let kill = || assert_eq!(unsafe { libc::kill(libc::getpid(), SIGUSR1) }, 0);
    let send_each: [&dyn Fn(); 3] = [&kill, &|| send(SIGUSR1), &|| queue(SIGUSR1, 4711)];
    for send in send_each {
        send();
        let plain = *LAST.lock().unwrap();
        enter();
        send();
        *LAST.lock().unwrap() = [0; 128];
        leave();
        assert_eq!(plain, *LAST.lock().unwrap());
    }
    assert_eq!(runs(), 6);
}

pub(crate) fn mask_is_given_back() {
    start("user");
    handle(SIGUSR1, note, 0);
    handle(SIGUSR2, note, 0);
    let before = 1_u64 << (libc::SIGWINCH - 1);
    // SAFETY: sets of 8 bytes.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &before, 0, 8) };
    enter();
    send(SIGUSR1);
    let inside = kernel_mask();
    for signal in [1, 2, 10, 12, 14, 15, 17, 34, 64] {
        assert!(inside & 1 << (signal - 1) != 0, "{signal}");
    }
    for signal in [4, 5, 6, 7, 8, 11, 31, 32, 33] {
        assert!(inside & 1 << (signal - 1) == 0, "{signal}");
    }
    send(SIGUSR2);
    leave();
    assert_eq!((runs(), kernel_mask()), (2, before));
}

pub(crate) fn handler_mask() {
    start("user");
    // SAFETY: all zero is a sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = masked as *const () as usize;
    // SAFETY: a set to fill.
    unsafe { libc::sigaddset(&mut action.sa_mask, libc::SIGHUP) };
    let set: SetAction = replaced("sigaction");
    // SAFETY: a whole structure.
    unsafe { set(SIGUSR1, &action, std::ptr::null_mut()) };
    for held in [false, true] {
        if held {
            enter();
        }
        send(SIGUSR1);
        if held {
            leave();
        }
        let expected = 1 << (libc::SIGHUP - 1) | 1 << (SIGUSR1 - 1);
        assert_eq!(MASK.swap(0, SeqCst), expected, "held: {held}");
    }
}

extern "C" fn masked(_: c_int) {
    MASK.store(kernel_mask() as usize, SeqCst);
}
