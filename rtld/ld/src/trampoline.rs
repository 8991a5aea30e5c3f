//! Code that is reached not by a call but through a slot or a descriptor, and therefore must keep registers that a
//! called function may change.
//!
//! `bind` keeps every general register and xmm0 to xmm15. This whole image uses only SSE2 instructions, which leave the
//! upper halves of wider vector registers, the mask registers and the x87 state alone; so nothing else needs saving,
//! and a bind costs less than 1 KiB of stack. Resolvers of indirect functions are foreign code: they run between
//! XSAVE and XRSTOR.

use crate::{dlfcn, exports, start};
use core::arch::global_asm;
use core::arch::x86_64::__cpuid;
use core::sync::atomic::{AtomicU8, Ordering};

global_asm!(
    r#"
    .text
    .p2align 4
    .globl rtld_bind_slot
    .hidden rtld_bind_slot
    .type rtld_bind_slot,@function
    # On entry: [rsp] what GOT[1] holds, [rsp + 8] the slot's number, [rsp + 16] the caller's return address.
rtld_bind_slot:
    .cfi_startproc
    .cfi_def_cfa_offset 24
    push    rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset rbx, -32
    mov     rbx, rsp
    .cfi_def_cfa_register rbx
    and     rsp, -16
    sub     rsp, 336
    mov     [rsp + 256], rax
    mov     [rsp + 264], rcx
    mov     [rsp + 272], rdx
    mov     [rsp + 280], rsi
    mov     [rsp + 288], rdi
    mov     [rsp + 296], r8
    mov     [rsp + 304], r9
    mov     [rsp + 312], r10
    mov     [rsp + 320], r11
"#,
    rtld_sys::store_vectors!(),
    r#"
    mov     rdi, [rbx + 8]
    mov     rsi, [rbx + 16]
    call    {bind}
    # The function's address takes the place of the slot's number; `ret` goes there.
    mov     [rbx + 16], rax
    mov     rax, [rsp + 256]
    mov     rcx, [rsp + 264]
    mov     rdx, [rsp + 272]
    mov     rsi, [rsp + 280]
    mov     rdi, [rsp + 288]
    mov     r8, [rsp + 296]
    mov     r9, [rsp + 304]
    mov     r10, [rsp + 312]
    mov     r11, [rsp + 320]
"#,
    rtld_sys::load_vectors!(),
    r#"
    mov     rsp, rbx
    .cfi_def_cfa_register rsp
    pop     rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
    lea     rsp, [rsp + 8]
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size rtld_bind_slot, . - rtld_bind_slot

    .p2align 4
    .globl rtld_call_resolver
    .hidden rtld_call_resolver
    .type rtld_call_resolver,@function
    # rdi: the resolver, esi: which parts of the extended state to keep. The area has the standard form: the parts asked
    # for end below 2752 bytes on every processor that has them.
rtld_call_resolver:
    .cfi_startproc
    push    rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset rbp, -16
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    push    rbx
    .cfi_offset rbx, -24
    push    r12
    .cfi_offset r12, -32
    sub     rsp, 2816
    and     rsp, -64
    mov     r12d, esi
    mov     r8, rdi
    # XRSTOR wants the header's reserved words to be zero.
    xor     eax, eax
    lea     rdi, [rsp + 512]
    mov     ecx, 8
    rep     stosq
    mov     eax, r12d
    xor     edx, edx
    xsave64 [rsp]
    call    r8
    mov     rbx, rax
    mov     eax, r12d
    xor     edx, edx
    xrstor64 [rsp]
    mov     rax, rbx
    lea     rsp, [rbp - 16]
    pop     r12
    pop     rbx
    pop     rbp
    .cfi_def_cfa rsp, 8
    ret
    .cfi_endproc
    .size rtld_call_resolver, . - rtld_call_resolver

    .p2align 4
    .globl rtld_tls_static
    .hidden rtld_tls_static
    .type rtld_tls_static,@function
    # A TLS descriptor's function: rax points to the descriptor, the result is relative to the thread pointer. It may
    # change no register but rax (TLS descriptors ABI).
rtld_tls_static:
    .cfi_startproc
    mov     rax, [rax + 8]
    ret
    .cfi_endproc
    .size rtld_tls_static, . - rtld_tls_static

    .p2align 4
    .globl rtld_tls_dynamic
    .hidden rtld_tls_dynamic
    .type rtld_tls_dynamic,@function
    # A variable of a dynamic module: the descriptor's second word points to {{module, offset, generation}}. A vector that
    # is as new as the record, with a block in it, answers at once; else everything a called function may change is kept.
rtld_tls_dynamic:
    .cfi_startproc
"#,
    rtld_sys::push_registers!("rcx" "rdx"),
    r#"
    mov     rax, [rax + 8]
    mov     rcx, fs:[8]
    mov     rdx, [rax + 16]
    cmp     [rcx], rdx
    jb      2f
    mov     rdx, [rax]
    cmp     rdx, [rcx - 16]
    ja      2f
    shl     rdx, 4
    mov     rcx, [rcx + rdx]
    cmp     rcx, -1
    je      2f
    mov     rax, [rax + 8]
    add     rax, rcx
    sub     rax, fs:[0]
"#,
    rtld_sys::pop_registers!("rdx" "rcx"),
    r#"
    ret
    .cfi_adjust_cfa_offset 16
2:  push    rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbx, 0
    mov     rbx, rsp
    .cfi_def_cfa_register rbx
    and     rsp, -16
    sub     rsp, 320
    mov     [rsp + 256], rsi
    mov     [rsp + 264], rdi
    mov     [rsp + 272], r8
    mov     [rsp + 280], r9
    mov     [rsp + 288], r10
    mov     [rsp + 296], r11
"#,
    rtld_sys::store_vectors!(),
    r#"
    mov     rdi, rax
    call    {tls}
    sub     rax, fs:[0]
    mov     rsi, [rsp + 256]
    mov     rdi, [rsp + 264]
    mov     r8, [rsp + 272]
    mov     r9, [rsp + 280]
    mov     r10, [rsp + 288]
    mov     r11, [rsp + 296]
"#,
    rtld_sys::load_vectors!(),
    r#"
    mov     rsp, rbx
    .cfi_def_cfa_register rsp
    pop     rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
"#,
    rtld_sys::pop_registers!("rdx" "rcx"),
    r#"
    ret
    .cfi_endproc
    .size rtld_tls_dynamic, . - rtld_tls_dynamic

    .p2align 4
    .globl rtld_dlopen
    .hidden rtld_dlopen
    .type rtld_dlopen,@function
    # Functions whose meaning depends on who calls them: the return address becomes the last argument. The second name of each is
    # a local one, for debuggers: the C library's function of that name is never called.
dlopen:
rtld_dlopen:
    .cfi_startproc
    mov     rdx, [rsp]
    jmp     {open}
    .cfi_endproc
    .size rtld_dlopen, . - rtld_dlopen
    .globl rtld_dlsym
    .hidden rtld_dlsym
    .type rtld_dlsym,@function
dlsym:
rtld_dlsym:
    .cfi_startproc
    mov     rdx, [rsp]
    jmp     {symbol}
    .cfi_endproc
    .size rtld_dlsym, . - rtld_dlsym
    .globl rtld_dlvsym
    .hidden rtld_dlvsym
    .type rtld_dlvsym,@function
dlvsym:
rtld_dlvsym:
    .cfi_startproc
    mov     rcx, [rsp]
    jmp     {versioned_symbol}
    .cfi_endproc
    .size rtld_dlvsym, . - rtld_dlvsym
    .globl rtld_dlclose
    .hidden rtld_dlclose
    .type rtld_dlclose,@function
dlclose:
rtld_dlclose:
    .cfi_startproc
    jmp     {close}
    .cfi_endproc
    .size rtld_dlclose, . - rtld_dlclose
    .type dlopen,@function
    .type dlsym,@function
    .type dlvsym,@function
    .type dlclose,@function

    .p2align 4
    .globl rtld_tls_undefined
    .hidden rtld_tls_undefined
    .type rtld_tls_undefined,@function
    # An undefined weak variable: the sum with the thread pointer is the addend.
rtld_tls_undefined:
    .cfi_startproc
    mov     rax, [rax + 8]
    sub     rax, fs:[0]
    ret
    .cfi_endproc
    .size rtld_tls_undefined, . - rtld_tls_undefined
"#,
    bind = sym start::bind_slot,
    tls = sym exports::tls_get_address,
    open = sym dlfcn::open,
    close = sym dlfcn::close,
    symbol = sym dlfcn::symbol,
    versioned_symbol = sym dlfcn::versioned_symbol,
);

unsafe extern "C" {
    fn rtld_bind_slot();
    fn rtld_call_resolver(resolver: usize, parts: u32) -> usize;
    fn rtld_tls_static();
    fn rtld_tls_dynamic();
    fn rtld_dlopen();
    fn rtld_dlsym();
    fn rtld_dlvsym();
    fn rtld_dlclose();
    fn rtld_tls_undefined();
}

/// The entry points that relocations store.
pub fn entries() -> rtld_link::relocate::Entries {
    rtld_link::relocate::Entries {
        bind: rtld_bind_slot as *const () as usize,
        tls_static: rtld_tls_static as *const () as usize,
        tls_dynamic: rtld_tls_dynamic as *const () as usize,
        tls_undefined: rtld_tls_undefined as *const () as usize,
    }
}

/// `dlopen`, `dlsym`, `dlvsym` and `dlclose` as others call them.
pub fn dlfcn_entries() -> [usize; 4] {
    [
        rtld_dlopen as *const () as usize,
        rtld_dlsym as *const () as usize,
        rtld_dlvsym as *const () as usize,
        rtld_dlclose as *const () as usize,
    ]
}

/// SSE, AVX, opmask, upper halves of zmm0 to zmm15, zmm16 to zmm31 (Intel SDM 13.1).
const PARTS: u32 = 0b1110_0110;
const OSXSAVE: u32 = 1 << 27;

/// Whether the system has XSAVE: not asked yet, no, yes.
static HAS_XSAVE: AtomicU8 = AtomicU8::new(0);

/// Calls a resolver from within a bind, when the vector registers hold the arguments of the call that is being bound.
pub fn call_resolver(resolver: usize) -> usize {
    let mut known = HAS_XSAVE.load(Ordering::Relaxed);
    if known == 0 {
        known = if __cpuid(1).ecx & OSXSAVE != 0 { 2 } else { 1 };
        HAS_XSAVE.store(known, Ordering::Relaxed);
    }
    if known == 2 {
        // SAFETY: the caller checked that the resolver is executable; XSAVE is there.
        unsafe { rtld_call_resolver(resolver, PARTS) }
    } else {
        // SAFETY: without XSAVE there is no state beyond what bind has saved.
        unsafe { rtld_runtime::call::resolver(resolver) }
    }
}
