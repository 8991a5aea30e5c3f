//! Handlers called by us, without a frame of the kernel's: under seccomp filters, which may kill a process for queuing a
//! signal, and where the queue of signals is full. The handler gets the siginfo and a ucontext_t of the section's end; it runs
//! on the current stack. Like a frame of the kernel's, a call keeps the extended state of the processor: the section may be
//! that of a lazy call, whose arguments are there.

use crate::action::Record;
use crate::deliver;
use crate::first_line::Context;
use crate::hold::bit;
use crate::stash::Slot;
use crate::state::ThreadState;
use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, Ordering};
use rtld_sys::signal::{self, How, Information, Mask};

static FILTERED: AtomicBool = AtomicBool::new(false);

/// A seccomp filter is in force, or will be in a moment.
pub(crate) fn note_filter() {
    FILTERED.store(true, Ordering::Relaxed);
}

/// Whether a filter may be in force.
pub(crate) fn is_filtered() -> bool {
    FILTERED.load(Ordering::Relaxed)
}

const SA_NODEFER: u64 = 0x4000_0000;

/// `ucontext_t` of glibc: what programs may read of it, all of it zeroed.
#[repr(C, align(16))]
struct UserContext {
    kernel: Context,
    rest: [u64; 83],
}

/// Runs the handler; `mask` is the one that the interrupted code goes on with. Gives that mask, which the handler may have
/// changed in its context.
pub(crate) fn call(state: &ThreadState, record: &'static Record, mut slot: Slot, mask: Mask) -> Mask {
    let deferred = if record.action.flags & SA_NODEFER != 0 { 0 } else { bit(slot.signal) };
    let mut context = UserContext { kernel: Context { head: [0; 37], mask }, rest: [0; 83] };
    deliver::reset_if_asked(state, slot.signal, record);
    let _ = signal::change_mask(How::Set, mask | record.action.mask | deferred);
    // SAFETY: the program's handler for this signal; what it is given is ours and has the kernel's form.
    unsafe {
        let (information, context) = (&raw mut slot.information, &raw mut context.kernel);
        sigblock_call_handler(record.action.handler, slot.signal, information, context, kept_parts());
    }
    context.kernel.mask
}

/// x87, SSE, AVX, opmask, upper halves of zmm0 to zmm15, zmm16 to zmm31 (Intel SDM 13.1).
const PARTS: u32 = 0b1110_0111;
const OSXSAVE: u32 = 1 << 27;

/// Which parts of the extended state can be kept; 0 where the system has no XSAVE, and nothing beyond SSE.
fn kept_parts() -> u32 {
    if core::arch::x86_64::__cpuid(1).ecx & OSXSAVE != 0 { PARTS } else { 0 }
}

unsafe extern "C" {
    fn sigblock_call_handler(
        handler: usize,
        signal: i32,
        information: *mut Information,
        context: *mut Context,
        parts: u32,
    );
}

global_asm!(
    r#"
    .text
    .p2align 4
    .globl sigblock_call_handler
    .hidden sigblock_call_handler
    .type sigblock_call_handler,@function
    # rdi: the handler, esi: the signal, rdx: its siginfo_t, rcx: a ucontext_t, which gets the caller's registers, r8d: the
    # parts of the extended state to keep. Those end below 2752 bytes on every processor that has them.
sigblock_call_handler:
    .cfi_startproc
    push    rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset rbp, -16
    mov     [rcx + 120], rbp
    mov     rbp, rsp
    .cfi_def_cfa_register rbp
    mov     [rcx + 72], r12
    mov     [rcx + 80], r13
    mov     [rcx + 88], r14
    mov     [rcx + 96], r15
    mov     [rcx + 128], rbx
    lea     rax, [rbp + 16]
    mov     [rcx + 160], rax
    mov     rax, [rbp + 8]
    mov     [rcx + 168], rax
    push    rbx
    .cfi_offset rbx, -24
    push    r12
    .cfi_offset r12, -32
    mov     r12, rdi
    mov     ebx, r8d
    mov     r9, rdx
    mov     r10, rcx
    test    ebx, ebx
    jz      2f
    sub     rsp, 2816
    and     rsp, -64
    # XRSTOR wants the header's reserved words to be zero.
    xor     eax, eax
    lea     rdi, [rsp + 512]
    mov     ecx, 8
    rep     stosq
    mov     eax, ebx
    xor     edx, edx
    xsave64 [rsp]
2:  mov     edi, esi
    mov     rsi, r9
    mov     rdx, r10
    call    r12
    test    ebx, ebx
    jz      3f
    mov     eax, ebx
    xor     edx, edx
    xrstor64 [rsp]
3:  lea     rsp, [rbp - 16]
    pop     r12
    pop     rbx
    pop     rbp
    .cfi_def_cfa rsp, 8
    ret
    .cfi_endproc
    .size sigblock_call_handler, . - sigblock_call_handler
"#
);
