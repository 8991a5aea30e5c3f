//! The C library's functions that set what a signal does, in user mode: handlers of signals that can be held stand behind our
//! first-line handler; everything else goes to the kernel as it is. What the program reads back is what it set.

use crate::action::{self, LOCK};
use crate::backend::{self, Backend};
use crate::hold::{INTERNAL, bit};
use crate::outside::set_error;
use crate::state::{self, IN_VFORK, ThreadState};
use crate::{direct, first_line, mask, stash};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering};
use linux_raw_sys::errno::EINVAL;
use rtld_sys::Errno;
use rtld_sys::signal::{self, Action, How, LAST, Mask};

/// `struct sigaction` of <signal.h>.
#[repr(C)]
pub struct UserAction {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

const _: () = assert!(size_of::<UserAction>() == 152 && core::mem::offset_of!(UserAction, flags) == 136);

/// SIG_DFL, SIG_IGN, SIG_HOLD, SIG_ERR.
const DEFAULT: usize = 0;
const IGNORE: usize = 1;
const HOLD: usize = 2;
const ERROR: usize = usize::MAX;

/// SIGCHLD, SIGCONT, SIGURG and SIGWINCH.
const IGNORED_BY_DEFAULT: Mask = bit(17) | bit(18) | bit(23) | bit(28);

const SA_NOCLDSTOP: u64 = 1;
const SA_NOCLDWAIT: u64 = 2;
const SA_SIGINFO: u64 = 4;
const SA_UNSUPPORTED: u64 = 0x400;
const SA_EXPOSE_TAGBITS: u64 = 0x800;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_ONSTACK: u64 = 0x0800_0000;
const SA_RESTART: u64 = 0x1000_0000;
const SA_INTERRUPT: u64 = 0x2000_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESETHAND: u64 = first_line::SA_RESETHAND;
/// What the kernel keeps of the flags (Linux 5.11 and later clear the others).
const KEPT: u64 = SA_NOCLDSTOP
    | SA_NOCLDWAIT
    | SA_SIGINFO
    | SA_EXPOSE_TAGBITS
    | SA_RESTORER
    | SA_ONSTACK
    | SA_RESTART
    | SA_NODEFER
    | SA_RESETHAND;
const _: () = assert!(KEPT & (SA_UNSUPPORTED | SA_INTERRUPT) == 0);

/// Whether the program may set an action for this number at all.
fn is_settable(number: c_int) -> bool {
    bit(number) & !INTERNAL != 0
}

/// Sets an action (if there is one) and gives the one before, as the program sees them.
fn exchange(number: c_int, fresh: Option<&Action>) -> Result<Action, Errno> {
    if !is_settable(number) {
        return Err(Errno::INVAL);
    }
    let state = state::current();
    let user = backend::current() == Backend::User;
    if !user || !action::is_ours(number) || state.state.load(Ordering::Relaxed) & IN_VFORK != 0 {
        // A vfork child has the table of its parent, but actions of its own.
        // SAFETY: the program's handler is a function; the restorer is ours.
        return unsafe { signal::set_action(number, fresh) }.map(|old| seen(number, old));
    }
    LOCK.with(state, || change(number, fresh))
}

/// A seccomp filter comes, which may forbid prctl(2) and rt_sigaction(2): from now on the kernel itself resets handlers with SA_RESETHAND.
pub(crate) fn before_filter(state: &ThreadState) {
    // The filter of a vfork child is not its parent's.
    if state.state.load(Ordering::Relaxed) & IN_VFORK != 0 || direct::is_filtered() {
        return;
    }
    LOCK.with(state, || {
        direct::note_filter();
        for number in 1..=LAST {
            let record = action::current(number).filter(|record| record.action.flags & SA_RESETHAND != 0);
            // SAFETY: only asks.
            let is_set = || unsafe { signal::set_action(number, None) }.is_ok_and(|old| is_entry_point(old.handler));
            if let Some(record) = record.filter(|_| is_set()) {
                // It fails where the program has forbidden it already.
                let _ = change(number, Some(&record.action));
            }
        }
    });
}

fn is_entry_point(handler: usize) -> bool {
    first_line::turn_of(handler).is_some()
}

/// Under the lock.
fn change(number: c_int, fresh: Option<&Action>) -> Result<Action, Errno> {
    let before = action::current(number);
    let Some(fresh) = fresh else {
        // SAFETY: only asks.
        return unsafe { signal::set_action(number, None) }.map(|old| seen(number, old));
    };
    if [DEFAULT, IGNORE].contains(&fresh.handler) {
        // SAFETY: no function.
        let old = unsafe { signal::set_action(number, Some(fresh)) }?;
        action::forget(number);
        if fresh.handler == IGNORE || IGNORED_BY_DEFAULT & bit(number) != 0 {
            // The kernel discards what is pending.
            stash::discard(state::current(), number);
        }
        return Ok(seen(number, old));
    }
    let kept = Action { flags: fresh.flags & KEPT, mask: fresh.mask & !crate::hold::ALWAYS, ..*fresh };
    // First the table: the signal may come as soon as the kernel knows.
    let turn = action::set(number, &kept).ok_or(Errno::NOMEM)?;
    let ours = Action { handler: first_line::address(turn), flags: fresh.flags & !SA_RESETHAND | SA_SIGINFO, ..*fresh };
    let kernels = if direct::is_filtered() { fresh.flags & SA_RESETHAND } else { 0 };
    let ours = Action { flags: ours.flags | kernels, ..ours };
    // SAFETY: our handler may run at any time; the restorer is ours.
    match unsafe { signal::set_action(number, Some(&ours)) } {
        Ok(old) => Ok(seen(number, old)),
        Err(error) => {
            action::restore(number, before);
            Err(error)
        }
    }
}

/// What the program set where the kernel has an entry point of ours; else what the kernel has.
fn seen(number: c_int, kernel: Action) -> Action {
    let record = first_line::turn_of(kernel.handler).and_then(|turn| action::at_turn(number, turn));
    record.map_or(kernel, |record| record.action)
}

/// sigaction(2).
pub(crate) extern "C" fn sigaction(number: c_int, fresh: *const UserAction, old: *mut UserAction) -> c_int {
    let action = if fresh.is_null() {
        None
    } else {
        // SAFETY: callers pass a struct sigaction.
        let fresh = unsafe { &*fresh };
        let [mask, ..] = fresh.mask;
        let flags = u64::from(fresh.flags as u32) | SA_RESTORER;
        Some(Action { handler: fresh.handler, flags, restorer: signal::restorer(), mask })
    };
    match exchange(number, action.as_ref()) {
        Ok(before) => {
            if !old.is_null() {
                // SAFETY: callers pass a struct sigaction to fill.
                let old = unsafe { &mut *old };
                old.handler = before.handler;
                // The C library leaves the rest of the set alone.
                let [first, ..] = &mut old.mask;
                *first = before.mask;
                old.flags = before.flags as u32 as c_int;
                old.restorer = before.restorer;
            }
            0
        }
        Err(error) => set_error(c_int::from(error.0)),
    }
}

fn simple(number: c_int, handler: usize, flags: u64, mask: Mask) -> Result<Action, Errno> {
    let flags = flags | SA_RESTORER;
    exchange(number, Some(&Action { handler, flags, restorer: signal::restorer(), mask }))
}

fn handler_of(result: Result<Action, Errno>) -> usize {
    match result {
        Ok(action) => action.handler,
        Err(error) => {
            set_error(c_int::from(error.0));
            ERROR
        }
    }
}

/// Signals whose handlers interrupt system calls, as siginterrupt(3) left them.
static INTERRUPTING: AtomicU64 = AtomicU64::new(0);

/// signal(2), bsd_signal(3), ssignal(3).
pub(crate) extern "C" fn signal(number: c_int, handler: usize) -> usize {
    let result = if handler == ERROR {
        Err(Errno::INVAL)
    } else {
        let interrupts = INTERRUPTING.load(Ordering::Relaxed) & bit(number) != 0;
        simple(number, handler, if interrupts { 0 } else { SA_RESTART }, bit(number))
    };
    handler_of(result)
}

/// sysv_signal(3).
pub(crate) extern "C" fn sysv_signal(number: c_int, handler: usize) -> usize {
    let result = if handler == ERROR {
        Err(Errno::INVAL)
    } else {
        simple(number, handler, SA_RESETHAND | SA_NODEFER | SA_INTERRUPT, 0)
    };
    handler_of(result)
}

/// sigset(3).
pub(crate) extern "C" fn sigset(number: c_int, disposition: usize) -> usize {
    if !is_settable(number) {
        return handler_of(Err(Errno::INVAL));
    }
    if disposition == HOLD {
        let blocked = mask::change(How::Block, bit(number)) & bit(number) != 0;
        return if blocked { HOLD } else { handler_of(exchange(number, None)) };
    }
    match simple(number, disposition, 0, 0) {
        Ok(before) => {
            let blocked = mask::change(How::Unblock, bit(number)) & bit(number) != 0;
            if blocked { HOLD } else { before.handler }
        }
        error => handler_of(error),
    }
}

fn status_of(result: Result<Action, Errno>) -> c_int {
    match result {
        Ok(_) => 0,
        Err(error) => set_error(c_int::from(error.0)),
    }
}

/// sigignore(3).
pub(crate) extern "C" fn sigignore(number: c_int) -> c_int {
    status_of(simple(number, IGNORE, 0, 0))
}

/// siginterrupt(3).
pub(crate) extern "C" fn siginterrupt(number: c_int, interrupts: c_int) -> c_int {
    let result = exchange(number, None).and_then(|mut action| {
        if interrupts != 0 {
            INTERRUPTING.fetch_or(bit(number), Ordering::Relaxed);
            action.flags &= !SA_RESTART;
        } else {
            INTERRUPTING.fetch_and(!bit(number), Ordering::Relaxed);
            action.flags |= SA_RESTART;
        }
        exchange(number, Some(&Action { flags: action.flags | SA_RESTORER, restorer: signal::restorer(), ..action }))
    });
    status_of(result)
}

/// `struct sigvec`.
#[repr(C)]
pub struct Vector {
    handler: usize,
    mask: c_int,
    flags: c_int,
}

const SV_ONSTACK: c_int = 1;
const SV_INTERRUPT: c_int = 2;
const SV_RESETHAND: c_int = 4;

/// sigvec(3).
pub(crate) extern "C" fn sigvec(number: c_int, fresh: *const Vector, old: *mut Vector) -> c_int {
    let result = if fresh.is_null() {
        exchange(number, None)
    } else {
        // SAFETY: callers pass a struct sigvec.
        let fresh = unsafe { &*fresh };
        let mut flags = 0;
        for (bit, means) in [(SV_ONSTACK, SA_ONSTACK), (SV_RESETHAND, SA_RESETHAND)] {
            flags |= if fresh.flags & bit != 0 { means } else { 0 };
        }
        flags |= if fresh.flags & SV_INTERRUPT == 0 { SA_RESTART } else { 0 };
        simple(number, fresh.handler, flags, Mask::from(fresh.mask as u32))
    };
    if let Ok(before) = &result
        && !old.is_null()
    {
        let mut flags = 0;
        for (means, bit) in [(SA_ONSTACK, SV_ONSTACK), (SA_RESETHAND, SV_RESETHAND)] {
            flags |= if before.flags & means != 0 { bit } else { 0 };
        }
        flags |= if before.flags & SA_RESTART == 0 { SV_INTERRUPT } else { 0 };
        // SAFETY: callers pass a struct sigvec to fill.
        unsafe { old.write(Vector { handler: before.handler, mask: before.mask as c_int, flags }) };
    }
    status_of(result)
}

const _: () = assert!(LAST == 64 && EINVAL == 22);
