//! vfork(2): the child runs on the parent's stack, in its thread's state, with its table of actions, while the parent's thread
//! stands still. What the child leaves behind there is put right when the parent goes on.

use crate::callback::{self, Open};
use crate::deliver;
use crate::outside::set_error;
use crate::state::{self, IN_VFORK, ThreadState};
use crate::word::PENDING;
use core::arch::global_asm;
use core::ffi::c_int;
use core::sync::atomic::Ordering;

unsafe extern "C" {
    fn sigblock_vfork();
}

/// Our vfork.
pub(crate) fn address() -> usize {
    sigblock_vfork as *const () as usize
}

/// Before the call: no section is open in the parent.
extern "C" fn before() -> *const ThreadState {
    let state = state::current();
    callback::suspend(state);
    state
}

/// In the child.
extern "C" fn in_child(state: &ThreadState) {
    state.state.fetch_or(IN_VFORK, Ordering::Relaxed);
}

/// In the parent, when the child has become another program or has ended, be it inside a section; or when there was none.
extern "C" fn in_parent(state: &ThreadState, open: *mut Open, result: isize) -> isize {
    state.open.store(open, Ordering::Relaxed);
    deliver::drop_vfork(state);
    state.state.fetch_and(!IN_VFORK, Ordering::Relaxed);
    // What came since the child ended found the word as the child left it.
    let waits = state.held.load(Ordering::Relaxed) != 0 && state.word.load(Ordering::Relaxed) & PENDING != 0;
    state.word.store(if waits { PENDING } else { 0 }, Ordering::Relaxed);
    if waits {
        deliver::at_end(state);
    }
    if result < 0 {
        set_error(-result as c_int);
        return -1;
    }
    result
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
    mov     rdx, [rax + 24]
    pop     rdi
    .cfi_adjust_cfa_offset -8
    .cfi_register rip, rdi
    mov     eax, 58
    syscall
    push    rdi
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rip, 0
    mov     rdi, rsi
    mov     rsi, rdx
    mov     rdx, rax
    sub     rsp, 8
    .cfi_adjust_cfa_offset 8
    test    rax, rax
    jz      2f
    call    {in_parent}
    add     rsp, 8
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_adjust_cfa_offset 8
2:  call    {in_child}
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

const _: () = assert!(core::mem::offset_of!(ThreadState, open) == 24);
