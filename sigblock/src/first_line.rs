//! The handler that the kernel calls in user mode, before the program's: inside a section it puts the signal away, outside
//! it goes on to the program's handler, with the kernel's frame and nothing of ours on the stack.
//!
//! It runs on whatever stack the program chose for its handlers, so it is frugal.

use crate::action::{self, Record, TURNS};
use crate::deliver::{self, count_held, is_marker};
use crate::direct;
use crate::hold::{self, bit};
use crate::stash::{self, Slot};
use crate::state::{self, IN_VFORK, ThreadState};
use crate::word::{self, PENDING};
use core::arch::global_asm;
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use rtld_sys::signal::{self, Action, How, Information, Mask};

global_asm!(
    r#"
    .text
    .p2align 4
    .globl sigblock_first_lines
    .hidden sigblock_first_lines
    .type sigblock_first_lines,@function
    # The entry points: all arguments stay, rcx gets the entry point's number.
sigblock_first_lines:
    .cfi_startproc
    .set sigblock_turn, 0
    .rept {turns}
    .p2align 4
    mov     ecx, sigblock_turn
    jmp     sigblock_first_line
    .set sigblock_turn, sigblock_turn + 1
    .endr
    .cfi_endproc
    .size sigblock_first_lines, . - sigblock_first_lines

    .p2align 4
    .type sigblock_first_line,@function
sigblock_first_line:
    .cfi_startproc
"#,
    rtld_sys::push_registers!("rdi" "rsi" "rdx"),
    r#"
    call    {arrive}
"#,
    rtld_sys::pop_registers!("rdx" "rsi" "rdi"),
    r#"
    test    rax, rax
    jz      2f
    jmp     rax
2:  ret
    .cfi_endproc
    .size sigblock_first_line, . - sigblock_first_line
"#,
    turns = const TURNS,
    arrive = sym arrive,
);

unsafe extern "C" {
    fn sigblock_first_lines();
}

/// Bytes from one entry point to the next.
const STRIDE: usize = 16;

/// The address of an entry point, for the kernel.
pub(crate) fn address(turn: usize) -> usize {
    (sigblock_first_lines as *const () as usize).wrapping_add(turn * STRIDE)
}

/// The entry point with an address, if it is one.
pub(crate) fn turn_of(handler: usize) -> Option<usize> {
    let distance = handler.wrapping_sub(address(0));
    (distance < TURNS * STRIDE).then_some(distance / STRIDE)
}

/// The part of the kernel's `struct ucontext` that matters here.
#[repr(C)]
pub(crate) struct Context {
    /// Flags, link, stack and registers.
    pub head: [u64; 37],
    /// The mask that the interrupted code goes on with.
    pub mask: Mask,
}

const _: () = assert!(core::mem::offset_of!(Context, mask) == 296);

/// First of the signals that queue instead of merging.
pub(crate) const FIRST_QUEUED: c_int = 32;

pub(crate) const SA_RESETHAND: u64 = 0x8000_0000;

/// A signal has come. Gives the program's handler if it is to run now, or 0.
extern "C" fn arrive(number: c_int, information: *mut Information, context: *mut Context, turn: usize) -> usize {
    let Some(record) = action::at_turn(number, turn) else { return 0 };
    let state = state::current();
    // SAFETY: the kernel passes a siginfo_t in its frame, which is ours until we return.
    let information = unsafe { &mut *information };
    if word::is_raised(&state.word) && hold::current() & bit(number) != 0 {
        // SAFETY: the kernel passes a ucontext_t in its frame, which is ours until we return.
        if put_away(state, number, information, unsafe { &mut *context }) {
            return 0;
        }
    } else if (state.held.load(Ordering::Relaxed) != 0 || is_marker(information))
        && !exchange(state, number, information)
    {
        return 0;
    }
    if record.action.flags & SA_RESETHAND != 0 {
        reset(state, number, record);
    }
    record.action.handler
}

/// Inside a section: keeps the signal, and has the kernel hold all that follow. False if it can be kept nowhere.
fn put_away(state: &ThreadState, number: c_int, information: &Information, context: &mut Context) -> bool {
    let hold = hold::current();
    // Others that the program's mask for this handler lets through may come in on top of us until here, and do the same.
    let Ok(before) = signal::change_mask(How::Block, hold) else { return false };
    let merges = number < FIRST_QUEUED && stash::contains(state, number);
    if !merges && !is_marker(information) {
        let in_vfork = state.state.load(Ordering::Relaxed) & IN_VFORK != 0;
        let process = if in_vfork { rtld_sys::process::id() } else { 0 };
        let slot = Slot { signal: number, process, information: *information };
        let kept = stash::push(state, slot)
            || signal::queue_to_myself(number, information).is_ok()
            || number < FIRST_QUEUED && signal::send_to_myself(number).is_ok();
        if !kept {
            let _ = signal::change_mask(How::Set, before);
            return false;
        }
    }
    count_held();
    // Where several frames lie on one another the outermost runs last, and its mask is the section's.
    if context.mask & hold != hold {
        state.saved.store(context.mask, Ordering::Relaxed);
    }
    context.mask |= hold;
    let word = state.word.load(Ordering::Relaxed);
    state.word.store(word | PENDING, Ordering::Relaxed);
    true
}

/// Outside: a frame takes the oldest signal of its number that was put away, and leaves its own. False if there is none and
/// its own is only our marker.
fn exchange(state: &ThreadState, number: c_int, information: &mut Information) -> bool {
    let Ok(before) = signal::change_mask(How::Block, hold::current()) else { return true };
    let own = !is_marker(information);
    let taken = stash::take(state, |slot| slot.signal == number);
    let run = match taken {
        Some(slot) => {
            // A standard signal merges with the one that was put away, and took the place of its marker.
            if own && number >= FIRST_QUEUED {
                if signal::pending() & bit(number) == 0 {
                    // Not even our marker: another thread has had the kernel discard the number since.
                    while stash::take(state, |slot| slot.signal == number).is_some() {}
                    let _ = signal::change_mask(How::Set, before);
                    return true;
                }
                stash::push(state, Slot { information: *information, ..slot });
            }
            *information = slot.information;
            true
        }
        None => own,
    };
    let _ = signal::change_mask(How::Set, before);
    run
}

/// SA_RESETHAND, which the kernel is not told without a filter: a signal that is put away must not use the handler up.
pub(crate) fn reset(state: &ThreadState, number: c_int, record: &'static Record) {
    action::LOCK.with(state, || {
        // Under a filter, which may forbid the call, the kernel has been told and has done it.
        if direct::is_filtered() {
            if action::current(number).is_some_and(|current| core::ptr::eq(current, record)) {
                action::forget(number);
            }
            return;
        }
        // The kernel knows best: a child in the same memory changes the table, and not this process's actions.
        // SAFETY: only asks.
        let now = unsafe { signal::set_action(number, None) }.ok().and_then(|now| turn_of(now.handler));
        let now = now.and_then(|turn| action::at_turn(number, turn));
        if now.is_some_and(|now| core::ptr::eq(now, record)) {
            let default = Action { handler: deliver::DEFAULT, restorer: signal::restorer(), ..record.action };
            // SAFETY: the default action is no function.
            let _ = unsafe { signal::set_action(number, Some(&default)) };
            action::forget(number);
        }
    });
}
