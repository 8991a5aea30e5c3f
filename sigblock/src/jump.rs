//! longjmp(3) and setcontext(3): what lies in frames that a jump leaves is dropped before the C library jumps.

use crate::callback;
use crate::deliver;
use crate::hold;
use crate::state::ThreadState;
use crate::word::{self, PENDING};
use core::sync::atomic::Ordering;
use rtld_sys::signal::Mask;
use rtld_sys::thread;

/// `jmp_buf` of glibc on x86-64, as far as it is the same in all releases.
#[repr(C)]
struct Buffer {
    head: [usize; 6],
    /// Mangled with the thread's pointer guard.
    stack: usize,
    address: usize,
    mask_was_saved: i32,
    mask: Mask,
}

/// Where the pointer guard is above the thread pointer (glibc's tcbhead_t).
const POINTER_GUARD: usize = 0x30;
/// How pointers in a jmp_buf are rotated.
const ROTATION: u32 = 17;

/// A jump to a buffer is about to happen.
pub(crate) fn to_buffer(state: &ThreadState, buffer: usize) {
    if is_idle(state) {
        return;
    }
    // SAFETY: the caller passes the jmp_buf that it will jump to.
    let buffer = unsafe { &*core::ptr::with_exposed_provenance::<Buffer>(buffer) };
    // SAFETY: threads of this process have thread pointers.
    let guard = unsafe { thread::pointer() }.wrapping_add(POINTER_GUARD);
    // SAFETY: a word of the thread control block.
    let guard = unsafe { core::ptr::with_exposed_provenance::<usize>(guard).read() };
    callback::abandon_below(state, buffer.stack.rotate_right(ROTATION) ^ guard, usize::MAX);
    if buffer.mask_was_saved != 0 {
        adopt(state, buffer.mask);
    }
    deliver::give_out_rest(state);
}

/// The jump sets this mask. If it stays inside a section that gives one back, that is it. A mask that was saved inside the
/// section is the section's: the program's own stays.
fn adopt(state: &ThreadState, mask: Mask) {
    let word = state.word.load(Ordering::Relaxed);
    let hold = hold::current();
    if word & PENDING != 0 && word & !word::FLAGS != 0 && mask & hold != hold {
        state.saved.store(mask, Ordering::Relaxed);
    }
}

/// How far apart frames of one stack can be, if nothing else says whether they are of one.
const REACH: usize = 1 << 20;

/// `uc_mcontext.gregs[REG_RSP]` of a ucontext_t.
const CONTEXT_STACK: usize = 160;

/// `uc_sigmask` of a ucontext_t.
const CONTEXT_MASK: usize = 296;

/// The mask that a jump to a context sets.
pub(crate) fn adopt_from_context(state: &ThreadState, context: usize) {
    let mask = core::ptr::with_exposed_provenance::<Mask>(context.wrapping_add(CONTEXT_MASK));
    // SAFETY: the caller passes the ucontext_t that it will go on with.
    adopt(state, unsafe { mask.read() });
}

/// A jump to a context is about to happen: to an outer frame of this stack, or to another stack from where the program may
/// come back.
pub(crate) fn to_context(state: &ThreadState, context: usize) {
    if is_idle(state) {
        return;
    }
    let stack = core::ptr::with_exposed_provenance::<usize>(context.wrapping_add(CONTEXT_STACK));
    // SAFETY: the caller passes the ucontext_t that it will go on with.
    let target = unsafe { stack.read() };
    callback::abandon_below(state, target, REACH);
    callback::detach(state);
    adopt_from_context(state, context);
}

/// Nothing is open, and nothing waits.
fn is_idle(state: &ThreadState) -> bool {
    state.open.load(Ordering::Relaxed).is_null()
        && state.word.load(Ordering::Relaxed) == 0
        && state.held.load(Ordering::Relaxed) == 0
}
