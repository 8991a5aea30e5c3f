//! Which signals a section holds: one set a process, which can be configured within what may be held at all.

use crate::action;
use core::sync::atomic::{AtomicU64, Ordering};
use rtld_sys::signal::{LAST, Mask};

/// The bit of a signal in a set; 0 for a number that is none.
pub(crate) const fn bit(signal: i32) -> Mask {
    if signal >= 1 && signal <= LAST { 1 << (signal - 1) } else { 0 }
}

const fn bits(signals: &[i32]) -> Mask {
    let mut set = 0;
    let mut rest = signals;
    while let Some((&first, others)) = rest.split_first() {
        set |= bit(first);
        rest = others;
    }
    set
}

/// SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS: an instruction cannot wait for its own fault.
const FAULTS: Mask = bits(&[4, 5, 7, 8, 11, 31]);
/// glibc's own: cancellation and the broadcast of setuid(2), which waits for the answer of every thread.
pub(crate) const INTERNAL: Mask = bits(&[32, 33]);
/// SIGKILL and SIGSTOP, which nothing holds.
pub(crate) const ALWAYS: Mask = bits(&[9, 19]);
/// SIGABRT: abort(3) inside a section must reach its handler, and the end.
const ABORT: Mask = bits(&[6]);

/// All that can be held, and is unless somebody says otherwise.
pub const HOLDABLE: Mask = !(FAULTS | INTERNAL | ALWAYS | ABORT);

static HOLD: AtomicU64 = AtomicU64::new(HOLDABLE);

/// What sections hold now.
#[inline(always)]
pub(crate) fn current() -> Mask {
    HOLD.load(Ordering::Relaxed)
}

/// Changes what sections hold; what cannot be held is left out. Gives the set before.
pub(crate) fn set(mask: Mask) -> Mask {
    HOLD.swap(mask & HOLDABLE, Ordering::Relaxed)
}

/// Whether a handler of the program's would run for this signal.
pub(crate) fn has_handler(signal: i32) -> bool {
    action::current(signal).is_some()
}

/// A list of signals: names without SIG, RTMIN+n, RTMAX-n, numbers, or `all`, separated by commas. None if one is unknown.
pub(crate) fn parse(list: &[u8]) -> Option<Mask> {
    let mut set = 0;
    for word in list.split(|&byte| byte == b',').filter(|word| !word.is_empty()) {
        set |= if word == b"all" { HOLDABLE } else { bit(number(word)?) };
    }
    Some(set)
}

/// Names of the first 31 signals, in order (signal(7)).
const NAMES: [&[u8]; 31] = [
    b"HUP", b"INT", b"QUIT", b"ILL", b"TRAP", b"ABRT", b"BUS", b"FPE", b"KILL", b"USR1", b"SEGV", b"USR2", b"PIPE",
    b"ALRM", b"TERM", b"STKFLT", b"CHLD", b"CONT", b"STOP", b"TSTP", b"TTIN", b"TTOU", b"URG", b"XCPU", b"XFSZ",
    b"VTALRM", b"PROF", b"WINCH", b"IO", b"PWR", b"SYS",
];

/// What glibc calls SIGRTMIN.
const FIRST_REAL_TIME: i32 = 34;

fn number(word: &[u8]) -> Option<i32> {
    let word = word.strip_prefix(b"SIG").unwrap_or(word);
    if let Some(position) = NAMES.iter().position(|&name| name == word) {
        return Some(position as i32 + 1);
    }
    let value = match word {
        b"POLL" => 29,
        b"RTMIN" => FIRST_REAL_TIME,
        b"RTMAX" => LAST,
        _ => {
            if let Some(more) = word.strip_prefix(b"RTMIN+") {
                FIRST_REAL_TIME.checked_add(decimal(more)?)?
            } else if let Some(less) = word.strip_prefix(b"RTMAX-") {
                LAST.checked_sub(decimal(less)?)?
            } else {
                decimal(word)?
            }
        }
    };
    (1..=LAST).contains(&value).then_some(value)
}

fn decimal(digits: &[u8]) -> Option<i32> {
    core::str::from_utf8(digits).ok()?.parse().ok().filter(|&value: &i32| value >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_wait_is_never_held() {
        for signal in [4, 5, 6, 7, 8, 9, 11, 19, 31, 32, 33] {
            assert_eq!(HOLDABLE & bit(signal), 0, "{signal}");
        }
        assert_eq!(HOLDABLE.count_ones(), 64 - 11);
        assert_eq!(bit(0) | bit(65) | bit(-1), 0);
    }

    #[test]
    fn lists_of_signals() {
        assert_eq!(parse(b""), Some(0));
        assert_eq!(parse(b"all"), Some(HOLDABLE));
        assert_eq!(parse(b"USR1,12,SIGINT"), Some(bit(10) | bit(12) | bit(2)));
        assert_eq!(parse(b"RTMIN,RTMIN+3,RTMAX,RTMAX-1"), Some(bit(34) | bit(37) | bit(64) | bit(63)));
        for wrong in [&b"USR3"[..], b"0", b"65", b"RTMIN+31", b"-1", b"RTMAX-64", b"usr1", b"RTMIN+-1"] {
            assert_eq!(parse(wrong), None, "{}", String::from_utf8_lossy(wrong));
        }
    }
}
