//! vfork(2): the child runs on the parent's stack, in its thread's state, with its table of actions, while the parent's thread
//! stands still. What the child leaves behind there is put right when the parent goes on.

use crate::callback::{self, Open};
use crate::deliver;
use crate::outside::set_error;
use crate::state::{self, IN_VFORK, REGISTERED, ThreadState};
use crate::word::{FLAGS, PENDING};
use crate::{hold, mask};
use core::arch::global_asm;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use rtld_sys::signal::{self, How};

unsafe extern "C" {
    fn sigblock_vfork();
}

/// Our vfork.
pub(crate) fn address() -> usize {
    sigblock_vfork as *const () as usize
}

/// Before the call: no section of a callback is open in the parent, and the child begins with the program's mask.
extern "C" fn before() -> *const ThreadState {
    let state = state::current();
    callback::suspend(state);
    mask::lend(state);
    state
}

/// In the child.
extern "C" fn in_child(state: &ThreadState) {
    state.state.fetch_or(IN_VFORK, Ordering::Relaxed);
}

/// What the parent keeps in registers while the child runs.
#[repr(C)]
struct Kept {
    word: u32,
    own: u32,
    saved: u64,
    open: *mut Open,
}

/// In the parent, when the child has become another program or has ended, be it inside a section; or when there was none.
extern "C" fn in_parent(state: &ThreadState, result: isize, kept: &Kept) -> isize {
    state.open.store(kept.open, Ordering::Relaxed);
    state.own.store(kept.own, Ordering::Relaxed);
    deliver::drop_vfork(state);
    state.state.fetch_and(!IN_VFORK, Ordering::Relaxed);
    let was_marked = kept.word & PENDING != 0;
    if was_marked {
        state.saved.store(kept.saved, Ordering::Relaxed);
    }
    // The kernel holds for a thread that it knows: the mask was the program's all the time.
    let by_kernel = state.state.load(Ordering::Relaxed) & REGISTERED != 0;
    if give_back(&state.word, kept.word, by_kernel || state.held.load(Ordering::Relaxed) != 0) == PENDING {
        deliver::at_end(state);
    } else if was_marked && !by_kernel {
        // The child was given the program's mask.
        let _ = signal::change_mask(How::Block, hold::current());
    }
    if result < 0 {
        set_error(-result as c_int);
        return -1;
    }
    result
}

/// Makes the word what it was before the child; gives what it is now. What came since the child ended found the word as the child
/// left it, and may have marked it, if something waits (`may_be_marked`): at any moment, so that one instruction must change
/// the word. A mark that was the child's costs one call.
fn give_back(word: &AtomicU32, kept: u32, may_be_marked: bool) -> u32 {
    let (count, mark) = (kept & !FLAGS, kept & PENDING);
    let fresh = |now: u32| count | mark | if may_be_marked { now & PENDING } else { 0 };
    let before = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(fresh(now)));
    fresh(before.unwrap_or_else(|now| now))
}

global_asm!(
    r#"
    .text
    .p2align 4
    .globl sigblock_vfork
    .hidden sigblock_vfork
    .type sigblock_vfork,@function
sigblock_vfork:
    .cfi_startproc
    sub     rsp, 8
    .cfi_adjust_cfa_offset 8
    call    {before}
    add     rsp, 8
    .cfi_adjust_cfa_offset -8
    # The child returns first, and overwrites the return address: it stays in a register, like all that the parent needs.
    mov     rsi, rax
    mov     r8, [rax]
    mov     r9, [rax + 8]
    mov     r10, [rax + 24]
    mov     edx, [rax + 60]
    pop     rdi
    .cfi_adjust_cfa_offset -8
    .cfi_register rip, rdi
    mov     eax, 58
    syscall
    push    rdi
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rip, 0
    mov     rdi, rsi
    mov     rsi, rax
    test    rax, rax
    jz      2f
    sub     rsp, 24
    .cfi_adjust_cfa_offset 24
    mov     [rsp], r8d
    mov     [rsp + 4], edx
    mov     [rsp + 8], r9
    mov     [rsp + 16], r10
    mov     rdx, rsp
    call    {in_parent}
    add     rsp, 24
    .cfi_adjust_cfa_offset -24
    ret
2:  sub     rsp, 8
    .cfi_adjust_cfa_offset 8
    call    {in_child}
    xor     eax, eax
    add     rsp, 8
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size sigblock_vfork, . - sigblock_vfork
"#,
    before = sym before,
    in_child = sym in_child,
    in_parent = sym in_parent,
);

const _: () = assert!(core::mem::offset_of!(ThreadState, word) == 0 && core::mem::offset_of!(ThreadState, saved) == 8);
const _: () = assert!(core::mem::offset_of!(ThreadState, open) == 24 && core::mem::offset_of!(ThreadState, own) == 60);
const _: () = assert!(size_of::<Kept>() == 24 && core::mem::offset_of!(Kept, open) == 16);
