//! Filters, processes and threads around sections.

use crate::actions::old_handler;
use crate::notes::*;
use crate::world::*;
use libc::{SIGRTMIN, SIGUSR1, SIGUSR2};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Kills for every call that OpenSSH's sandbox kills for, of those that could be made here.
fn kill_for_unusual_calls() {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let jump = |k: i64| libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: k as u32 };
    let mut program = vec![statement(0x20, 0)];
    for call in [libc::SYS_rt_tgsigqueueinfo, libc::SYS_gettid, libc::SYS_prctl, libc::SYS_membarrier, libc::SYS_tkill]
    {
        program.extend([jump(call), statement(0x06, 0x8000_0000)]);
    }
    program.push(statement(0x06, 0x7fff_0000));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let prctl: unsafe extern "C" fn(c_int, ...) -> c_int = replaced("prctl");
    // SAFETY: numbers only.
    assert_eq!(unsafe { prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: a whole program.
    assert_eq!(unsafe { prctl(libc::PR_SET_SECCOMP, 2, &raw const filter) }, 0);
}

pub(crate) fn filter() {
    start("user");
    let real_time = SIGRTMIN() + 1;
    handle(real_time, note, 0);
    handle(SIGUSR1, note, libc::SA_RESETHAND);
    // SAFETY: numbers only.
    let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
    kill_for_unusual_calls();
    enter();
    queue(real_time, 7);
    queue(real_time, 8);
    // SAFETY: numbers only.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, SIGUSR1) };
    leave();
    assert_eq!((runs(), word(), kernel_mask()), (3, 0, 0));
    assert!([7, 8].iter().all(|value| VALUES.iter().any(|known| known.load(SeqCst) == *value)));
    assert_eq!(old_handler(SIGUSR1), libc::SIG_DFL);
}

extern "C" fn clear_vectors(_: c_int, _: *mut libc::siginfo_t, _: *mut std::ffi::c_void) {
    RUNS.fetch_add(1, SeqCst);
    // SAFETY: clears all vector registers, as a handler may.
    unsafe { std::arch::asm!("vzeroall", clobber_abi("C")) };
}

extern "C" fn leave_here() {
    leave();
}

/// Leaves a section as a lazy call does: with a value in a whole vector register. Gives the value afterwards.
#[target_feature(enable = "avx")]
fn leave_with_vector(value: [u64; 4]) -> [u64; 4] {
    let mut after = [0_u64; 4];
    // SAFETY: the call is aligned and its clobbers are named; both values are 32 bytes.
    unsafe {
        std::arch::asm!(
            "vmovdqu ymm9, [{value}]", "call {leave}", "vmovdqu [r13], ymm9",
            value = in(reg) value.as_ptr(), leave = sym leave_here, in("r13") after.as_mut_ptr(), clobber_abi("C"),
        )
    };
    after
}

pub(crate) fn vectors() {
    assert!(std::is_x86_feature_detected!("avx"), "this processor has no AVX to lose");
    start("user");
    handle(SIGRTMIN() + 1, clear_vectors, 0);
    let value = [1, 2, 3, 4];
    for filtered in [false, true] {
        if filtered {
            kill_for_unusual_calls();
        }
        enter();
        queue(SIGRTMIN() + 1, 7);
        // SAFETY: AVX is there.
        assert_eq!(unsafe { leave_with_vector(value) }, value, "filtered: {filtered}");
    }
    assert_eq!(runs(), 2);
}

pub(crate) fn waited_for() {
    start("user");
    let real_time = SIGRTMIN() + 1;
    handle(real_time, note, 0);
    let change: unsafe extern "C" fn(c_int, *const u64, *mut u64) -> c_int = replaced("sigprocmask");
    let wait: unsafe extern "C" fn(*const u64, *mut libc::siginfo_t) -> c_int = replaced("sigwaitinfo");
    let set = 1_u64 << (real_time - 1);
    // Inside a section, and after it with the number blocked: the oldest comes first, and no marker shows.
    for inside in [true, false] {
        enter();
        (0..3).for_each(|value| queue(real_time, value));
        // SAFETY: sets of 8 bytes.
        unsafe { change(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
        if !inside {
            leave();
        }
        for value in 0..3 {
            // SAFETY: all zero is a siginfo_t.
            let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
            // SAFETY: a set of 8 bytes and a structure to fill.
            assert_eq!(unsafe { wait(&set, &mut information) }, real_time);
            // SAFETY: the value of a queued signal.
            assert_eq!(unsafe { information.si_value() }.sival_ptr as usize, value, "inside: {inside}");
        }
        if inside {
            leave();
        }
        // SAFETY: as above.
        unsafe { change(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) };
        assert_eq!((runs(), word(), kernel_mask()), (0, 0, 0));
    }
}

/// A child of fork after a section whose signal waits because the program has blocked it since.
pub(crate) fn fork_after() {
    start("user");
    let real_time = SIGRTMIN() + 1;
    handle(real_time, note, 0);
    let change: unsafe extern "C" fn(c_int, *const u64, *mut u64) -> c_int = replaced("sigprocmask");
    let pending: unsafe extern "C" fn(*mut u64) -> c_int = replaced("sigpending");
    let fork: unsafe extern "C" fn() -> i32 = replaced("fork");
    let set = 1_u64 << (real_time - 1);
    enter();
    queue(real_time, 1);
    // SAFETY: sets of 8 bytes.
    unsafe { change(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
    leave();
    // SAFETY: this process has one thread.
    let child = unsafe { fork() };
    let mut waiting = 0;
    // SAFETY: a set to fill.
    unsafe { pending(&mut waiting) };
    assert_eq!(waiting & set != 0, child != 0);
    if child == 0 {
        queue(real_time, 2);
    }
    // SAFETY: as above.
    unsafe { change(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) };
    assert_eq!((runs(), VALUES[0].load(SeqCst)), (1, if child == 0 { 2 } else { 1 }));
    if child == 0 {
        std::process::exit(0);
    }
    assert_eq!(wait(child), 0);
}

/// vfork, as a program calls it: the child may only call what it is given, and must not return.
#[inline(never)]
fn with_vfork(child: fn() -> !) -> i32 {
    let vfork: extern "C" fn() -> i32 = replaced("vfork");
    let process = vfork();
    if process == 0 {
        child();
    }
    wait(process)
}

pub(crate) fn vfork() {
    start("user");
    handle(SIGUSR1, note, 0);
    let status = with_vfork(|| {
        let signal: extern "C" fn(c_int, usize) -> usize = replaced("signal");
        let seen = signal(SIGUSR1, libc::SIG_DFL) == note as *const () as usize;
        // More handlers than the table has places for one signal; none of them is called.
        for handler in 1..9 {
            signal(SIGUSR1, handler * 0x1000);
        }
        // SAFETY: ends the child without a trace in its parent.
        unsafe { libc::_exit(i32::from(!seen)) }
    });
    assert_eq!(status, 0);
    assert_eq!(old_handler(SIGUSR1), note as *const () as usize);
    send(SIGUSR1);
    assert_eq!(runs(), 1);
}

pub(crate) fn vfork_killed() {
    start("user");
    handle(SIGUSR1, note, 0);
    let status = with_vfork(|| {
        enter();
        enter();
        send(SIGUSR1);
        send(libc::SIGKILL);
        unreachable!();
    });
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL);
    assert_eq!((runs(), word(), kernel_mask()), (0, 0, 0));
    send(SIGUSR1);
    assert_eq!(runs(), 1);
    enter();
    leave();
    assert_eq!(runs(), 1);
}

pub(crate) fn vfork_executes() {
    start("user");
    handle(SIGUSR1, note, 0);
    sigblock::api::sigblock_enter();
    send(SIGUSR1);
    let held = word();
    let status = with_vfork(|| {
        let execve: extern "C" fn(*const i8, *const *const i8, *const *const i8) -> c_int = replaced("execve");
        let (program, end) = (c"/bin/true".as_ptr(), std::ptr::null());
        execve(program, [program, end].as_ptr(), [end].as_ptr());
        // SAFETY: ends the child without a trace in its parent.
        unsafe { libc::_exit(1) }
    });
    assert_eq!((status, runs(), word()), (0, 0, held), "what waits in the parent is the parent's");
    sigblock::api::sigblock_leave();
    assert_eq!((runs(), word(), kernel_mask()), (1, 0, 0));
}

pub(crate) fn hold_set() {
    start("user");
    handle(SIGUSR1, note, 0);
    handle(SIGUSR2, note, 0);
    let (only, mut old) = (1_u64 << (SIGUSR1 - 1) | 1 << (libc::SIGSEGV - 1) | 1 << 32, 0);
    // SAFETY: sets of 8 bytes.
    unsafe { sigblock::api::sigblock_mask(&only, &mut old) };
    assert_eq!(old.count_ones(), 53);
    // SAFETY: as above.
    unsafe { sigblock::api::sigblock_mask(std::ptr::null(), &mut old) };
    assert_eq!(old, 1 << (SIGUSR1 - 1));
    enter();
    send(SIGUSR1);
    send(SIGUSR2);
    assert_eq!((RUNS.load(SeqCst), INSIDE.swap(0, SeqCst)), (1, 1), "SIGUSR2 is not held");
    leave();
    assert_eq!((runs(), kernel_mask()), (2, 0));
}

pub(crate) fn dead_thread() {
    start("user");
    let real_time = SIGRTMIN() + 1;
    let change = |how: c_int, signal: c_int| {
        let set = 1_u64 << (signal - 1);
        // SAFETY: sets of 8 bytes.
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const set, 0, 8) };
    };
    for signal in [SIGUSR1, SIGUSR2, real_time] {
        handle(signal, note, 0);
        change(libc::SIG_BLOCK, signal);
    }
    let thread = std::thread::spawn(move || {
        prepare_thread();
        enter();
        for signal in [SIGUSR1, SIGUSR2, real_time] {
            change(libc::SIG_UNBLOCK, signal);
            match signal {
                SIGUSR1 => send(signal),
                // SAFETY: numbers only.
                SIGUSR2 => assert_eq!(unsafe { libc::kill(libc::getpid(), signal) }, 0),
                _ => queue(signal, 77),
            }
        }
        let control: usize;
        // SAFETY: the first word of the thread control block.
        unsafe { std::arch::asm!("mov {}, fs:[0]", out(reg) control) };
        // What the C library does when it takes the dead thread's stack again.
        // SAFETY: this thread uses no section any more.
        unsafe { sigblock::clear(control) };
        assert_eq!(word(), 0);
    });
    assert!(thread.join().is_ok());
    assert_eq!(runs(), 0);
    change(libc::SIG_UNBLOCK, SIGUSR1);
    assert_eq!(runs(), 0, "what was sent to the thread ends with it");
    change(libc::SIG_UNBLOCK, SIGUSR2);
    assert_eq!(runs(), 1);
    change(libc::SIG_UNBLOCK, real_time);
    assert_eq!((runs(), VALUES[1].load(SeqCst)), (2, 77));
}

pub(crate) fn storm() {
    const THREADS: usize = 4;
    const SIGNALS: usize = 20_000;
    start("user");
    let real_time = SIGRTMIN() + 2;
    handle(real_time, count, libc::SA_RESTART);
    static STOP: AtomicUsize = AtomicUsize::new(0);
    let (sender, receiver) = std::sync::mpsc::channel();
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                prepare_thread();
                // SAFETY: no argument.
                sender.send(unsafe { libc::gettid() }).unwrap();
                let mut sections = 0_u64;
                while STOP.load(SeqCst) == 0 {
                    enter();
                    enter();
                    (0..100).for_each(|_| std::hint::spin_loop());
                    sections += 2;
                    leave();
                    leave();
                }
                sections
            })
        })
        .collect();
    let ids: Vec<i32> = receiver.iter().take(THREADS).collect();
    let mut sent = 0;
    while sent < SIGNALS {
        for &id in &ids {
            // SAFETY: all zero is a siginfo_t; its code says that it was queued.
            let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
            information.si_code = libc::SI_QUEUE;
            let arguments = (libc::SYS_rt_tgsigqueueinfo, std::process::id());
            // SAFETY: a whole structure.
            let result = unsafe { libc::syscall(arguments.0, arguments.1, id, real_time, &raw const information) };
            if result == 0 {
                sent += 1;
            } else {
                std::thread::yield_now();
            }
        }
    }
    while RUNS.load(SeqCst) < sent {
        std::thread::yield_now();
    }
    STOP.store(1, SeqCst);
    let sections: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!((runs(), sections > 1000), (sent, true));
    assert!(sigblock::backend::counts().held > 0);
}

extern "C" fn count(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    RUNS.fetch_add(1, SeqCst);
    if word() >= 0x10 {
        INSIDE.fetch_add(1, SeqCst);
    }
}

pub(crate) fn sigprocmask() {
    start("sigprocmask");
    assert!(sigblock::replacement(b"sigaction").is_none());
    // SAFETY: all zero is a sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = note as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: a whole structure.
    unsafe { libc::sigaction(SIGUSR1, &action, std::ptr::null_mut()) };
    enter();
    enter();
    send(SIGUSR1);
    leave();
    assert_eq!(runs(), 0);
    assert!(kernel_mask() & 1 << (SIGUSR1 - 1) != 0 && kernel_mask() & 1 << 32 == 0);
    leave();
    assert_eq!((runs(), kernel_mask(), word()), (1, 0, 0));
    assert!(in_child(|| ()).is_ok());
}

extern "C" fn enters(_: c_int) {
    enter();
    leave();
    RUNS.fetch_add(1, SeqCst);
}

/// A handler that is not held comes at any point of entering and leaving, and has sections of its own.
pub(crate) fn sigprocmask_interrupted() {
    const SIGNALS: usize = 10_000;
    start("sigprocmask");
    // SAFETY: all zero is a sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = enters as *const () as usize;
    // SAFETY: a whole structure.
    unsafe { libc::sigaction(libc::SIGABRT, &action, std::ptr::null_mut()) };
    // SAFETY: numbers only.
    let (process, main) = unsafe { (libc::getpid(), libc::gettid()) };
    let sender = std::thread::spawn(move || {
        while RUNS.load(SeqCst) < SIGNALS {
            // SAFETY: numbers only.
            unsafe { libc::syscall(libc::SYS_tgkill, process, main, libc::SIGABRT) };
        }
    });
    while RUNS.load(SeqCst) < SIGNALS {
        enter();
        leave();
    }
    assert!(sender.join().is_ok());
    assert_eq!((kernel_mask(), word()), (0, 0));
}
