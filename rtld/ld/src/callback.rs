//! Callbacks of `dl_iterate_phdr`: the thunk that calls them, and what unwinders are told about it.
//!
//! A callback is foreign code and may be left in any way. So its caller is assembly: the record of what is held lies in the
//! thunk's frame (`rtld_runtime::iterate`), no Rust frame lies between it and the callback, and exceptions, pthread_exit and
//! cancellation pass through by the thunk's unwind table. Its personality routine gives back what the frame holds when
//! the frame is unwound.

use crate::exports::here;
use core::arch::global_asm;
use core::ffi::c_int;
use core::mem::offset_of;
use rtld_runtime::iterate::{self, Iteration, ProgramHeaderInfo};
use sigblock::callback;

/// Bytes of the frame below the saved registers; with those and the return address a multiple of 16.
const FRAME: usize = 136;
const _: () = assert!(size_of::<Iteration>() <= FRAME && align_of::<Iteration>() <= 16);

global_asm!(
    r#"
    .text
    .p2align 4
    .globl rtld_iterate
    .hidden rtld_iterate
    .type rtld_iterate,@function
    .type dl_iterate_phdr,@function
    # int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data); that name is for debuggers.
dl_iterate_phdr:
rtld_iterate:
    .cfi_startproc
    # A distance of four bytes (DW_EH_PE_pcrel | DW_EH_PE_sdata4), so that nothing needs relocation.
    .cfi_personality 0x1b, {personality}
    push    rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset rbx, -16
    push    r12
    .cfi_adjust_cfa_offset 8
    .cfi_offset r12, -24
    sub     rsp, {frame}
    .cfi_adjust_cfa_offset {frame}
    mov     rbx, rdi
    mov     r12, rsi
    mov     rdi, rsp
    call    {begin}
    xor     esi, esi
2:  mov     rdi, rsp
    call    {step}
    test    rax, rax
    jz      3f
    mov     rdi, rax
    mov     esi, {size}
    mov     rdx, r12
    call    rbx
    mov     esi, eax
    jmp     2b
3:  mov     eax, [rsp + {result}]
    add     rsp, {frame}
    .cfi_adjust_cfa_offset -{frame}
    pop     r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore r12
    pop     rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
    ret
    .cfi_endproc
    .size rtld_iterate, . - rtld_iterate
"#,
    personality = sym callback::personality,
    begin = sym begin,
    step = sym step,
    frame = const FRAME,
    size = const size_of::<ProgramHeaderInfo>(),
    result = const offset_of!(Iteration, result),
);

unsafe extern "C" {
    fn rtld_iterate();
}

/// `dl_iterate_phdr` as others call it.
pub fn iterate_entry() -> usize {
    rtld_iterate as *const () as usize
}

extern "C" fn begin(place: *mut Iteration) {
    // SAFETY: the thunk passes its frame, which it keeps until the last step.
    unsafe { iterate::begin(here(), place) };
}

extern "C" fn step(place: *mut Iteration, result: c_int) -> *mut ProgramHeaderInfo {
    // SAFETY: the thunk has begun the iteration in its frame.
    unsafe { iterate::step(place, result) }
}
