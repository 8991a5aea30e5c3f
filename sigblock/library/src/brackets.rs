//! The C library's dl_iterate_phdr, dlopen, dlsym and dlclose inside sections that stay open while foreign code runs in
//! them: callbacks, constructors, finalisers, resolvers. See `sigblock::callback` for what such code may do.
//!
//! The functions are called from assembly whose frame has the section's record, so that exceptions and the end of a thread
//! pass through and end the section. What depends on its caller goes on to the C library without a section: dlsym of a special
//! handle, and dlopen of a name that is searched for.

use crate::exports::Name;
use crate::{start, system};
use core::arch::global_asm;
use core::ffi::{CStr, c_char};
use core::mem::offset_of;
use sigblock::callback::{self, Open, Release};
use sigblock::section;

/// A call inside a section.
#[repr(C)]
struct Frame {
    open: Open,
    first: usize,
    second: usize,
    index: usize,
    gap: usize,
}

/// With the return address and a saved register a multiple of 16.
const SIZE: usize = size_of::<Frame>();
const _: () = assert!(SIZE.is_multiple_of(16));

unsafe extern "C" {
    fn sigblock_library_iterate();
    fn sigblock_library_call();
    fn sigblock_library_choose();
}

/// What a function of the loader's leads to.
pub fn entry(index: usize) -> Option<usize> {
    const ITERATE: usize = Name::dl_iterate_phdr as usize;
    const OPEN: usize = Name::dlopen as usize;
    const FIND: usize = Name::dlsym as usize;
    const CLOSE: usize = Name::dlclose as usize;
    Some(match index {
        ITERATE => sigblock_library_iterate as *const () as usize,
        OPEN | FIND => sigblock_library_choose as *const () as usize,
        CLOSE => sigblock_library_call as *const () as usize,
        _ => return None,
    })
}

global_asm!(
    r#"
    .macro sigblock_library_begin
    push    rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset rbx, -16
    sub     rsp, {size}
    .cfi_adjust_cfa_offset {size}
    mov     [rsp + {first}], rdi
    mov     [rsp + {second}], rsi
    mov     rdi, rsp
    mov     esi, r11d
    call    {begin}
    .endm

    .macro sigblock_library_end
    mov     rdi, rsp
    mov     rsi, rax
    call    {end}
    add     rsp, {size}
    .cfi_adjust_cfa_offset -{size}
    pop     rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
    ret
    .endm

    .text
    .p2align 4
    .globl  sigblock_library_call
    .hidden sigblock_library_call
    .type   sigblock_library_call,@function
    # r11d: the name; up to two arguments.
sigblock_library_call:
    .cfi_startproc
    # A distance of four bytes (DW_EH_PE_pcrel | DW_EH_PE_sdata4), so that nothing needs relocation.
    .cfi_personality 0x1b, {personality}
    sigblock_library_begin
    mov     rdi, [rsp + {first}]
    mov     rsi, [rsp + {second}]
    call    rax
    sigblock_library_end
    .cfi_endproc
    .size sigblock_library_call, . - sigblock_library_call

    .p2align 4
    .globl  sigblock_library_iterate
    .hidden sigblock_library_iterate
    .type   sigblock_library_iterate,@function
    # The same, with our callback before the program's.
sigblock_library_iterate:
    .cfi_startproc
    .cfi_personality 0x1b, {personality}
    sigblock_library_begin
    lea     rdi, [rip + sigblock_library_visit]
    mov     rsi, rsp
    call    rax
    sigblock_library_end
    .cfi_endproc
    .size sigblock_library_iterate, . - sigblock_library_iterate

    .p2align 4
    .type   sigblock_library_visit,@function
    # int visit(struct dl_phdr_info *, size_t, Frame *)
sigblock_library_visit:
    .cfi_startproc
    push    rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset rbx, -16
    mov     rbx, rdx
    mov     rdx, [rbx + {second}]
    call    [rbx + {first}]
    mov     rdi, rbx
    mov     ebx, eax
    call    {visited}
    mov     eax, ebx
    pop     rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
    ret
    .cfi_endproc
    .size sigblock_library_visit, . - sigblock_library_visit

    .p2align 4
    .globl  sigblock_library_choose
    .hidden sigblock_library_choose
    .type   sigblock_library_choose,@function
    # Inside a section, or from here on as if the caller had called the C library.
sigblock_library_choose:
    .cfi_startproc
"#,
    rtld_sys::push_registers!("rdi" "rsi" "r11"),
    r#"
    mov     edx, r11d
    call    {outside}
"#,
    rtld_sys::pop_registers!("r11" "rsi" "rdi"),
    r#"
    test    rax, rax
    jz      sigblock_library_call
    jmp     rax
    .cfi_endproc
    .size sigblock_library_choose, . - sigblock_library_choose
    .purgem sigblock_library_begin
    .purgem sigblock_library_end
"#,
    size = const SIZE,
    first = const offset_of!(Frame, first),
    second = const offset_of!(Frame, second),
    begin = sym begin,
    end = sym end,
    visited = sym visited,
    outside = sym outside,
    personality = sym callback::personality,
);

/// Opens a section; gives the C library's function.
extern "C" fn begin(place: *mut Frame, index: usize) -> usize {
    let state = sigblock::current();
    section::enter(state);
    // SAFETY: the assembly's frame, whose arguments are written already.
    let frame = unsafe { &mut *place };
    frame.open = Open::new(release);
    frame.index = index;
    // SAFETY: the section was entered above; the record stays until `end`, or until it is unwound or jumped over.
    unsafe { callback::open(state, &raw mut frame.open) };
    start::next(index)
}

/// The program's callback has come back: whatever it did, the section goes on.
extern "C" fn visited(place: *mut Frame) {
    // SAFETY: the assembly's frame.
    let frame = unsafe { &mut *place };
    if !frame.open.is_raised() {
        let state = sigblock::current();
        section::enter(state);
        // SAFETY: as in `begin`.
        unsafe { callback::open(state, &raw mut frame.open) };
    }
}

/// Closes the section; gives what the program is to get.
extern "C" fn end(place: *mut Frame, result: usize) -> usize {
    // SAFETY: the assembly's frame.
    let frame = unsafe { &mut *place };
    // SAFETY: opened by `begin`.
    unsafe { callback::close(sigblock::current(), &raw mut frame.open) };
    if frame.index != Name::dlsym as usize || result == 0 {
        return result;
    }
    // SAFETY: dlsym's second argument.
    let name = unsafe { CStr::from_ptr(core::ptr::with_exposed_provenance::<c_char>(frame.second)) };
    start::in_place_of(name.to_bytes(), result)
}

/// The C library's function if the call depends on its caller, else 0.
extern "C" fn outside(first: usize, _second: usize, index: usize) -> usize {
    let depends = if index == Name::dlsym as usize {
        [system::DEFAULT, system::NEXT].contains(&first)
    } else {
        first != 0 && {
            // SAFETY: dlopen's first argument.
            let name = unsafe { CStr::from_ptr(core::ptr::with_exposed_provenance::<c_char>(first)) }.to_bytes();
            // $ORIGIN is the caller's.
            !name.contains(&b'/') || name.contains(&b'$')
        }
    };
    if depends { start::next(index) } else { 0 }
}

/// A section has nothing else to give back.
///
/// # Safety
/// As the type asks.
unsafe fn release(_: *mut Open, _: Release) {}
