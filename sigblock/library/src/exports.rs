//! Every name that this library exports: each leads where a table says, with all registers as they were. An entry of the table
//! that is not filled yet fills it first.
//!
//! May not decide where a name leads; `start` does.

use crate::start;
use core::arch::global_asm;
use core::ffi::CStr;
use core::sync::atomic::AtomicPtr;

macro_rules! export {
    ($($replaced:ident),* $(,)?) => {
        all! {
            dl_iterate_phdr, dlopen, dlsym, dlclose,
            // sigblock.h
            sigblock_enter, sigblock_leave, sigblock_word, sigblock_backend, sigblock_mask, sigblock_counts,
            sigblock_register, sigblock_release,
            $($replaced),*
        }
    };
}

macro_rules! all {
    ($($name:ident),* $(,)?) => {
        /// The names, as numbers.
        #[allow(non_camel_case_types, reason = "they are the C library's")]
        #[allow(dead_code, reason = "most are only counted")]
        #[derive(Clone, Copy)]
        pub enum Name { $($name),* }

        /// The names.
        pub const NAMES: [&CStr; COUNT] = [$(named(concat!(stringify!($name), "\0"))),*];

        /// What this library exports by them.
        pub static ENTRIES: [unsafe extern "C" fn(); COUNT] = [$(entries::$name),*];

        mod entries {
            use super::{Name, TABLE};
            $(
                #[unsafe(naked)]
                #[unsafe(no_mangle)]
                pub unsafe extern "C" fn $name() {
                    core::arch::naked_asm!(
                        "mov r11d, {index}",
                        "jmp qword ptr [rip + {table} + {offset}]",
                        index = const Name::$name as usize,
                        table = sym TABLE,
                        offset = const Name::$name as usize * 8,
                    )
                }
            )*
        }
    };
}

sigblock::for_replaced!(export);

/// How many of them come before those of the C library that sections replace.
pub const BEFORE_REPLACED: usize = INTERFACE.1 + 1;
/// How many names there are.
pub const COUNT: usize = BEFORE_REPLACED + sigblock::REPLACED.len();
/// The first and the last of the functions of sigblock.h.
pub const INTERFACE: (usize, usize) = (Name::sigblock_enter as usize, Name::sigblock_release as usize);

/// Where each name leads.
pub static TABLE: [AtomicPtr<()>; COUNT] =
    [const { AtomicPtr::new(sigblock_library_first as *const () as *mut ()) }; COUNT];

const fn named(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

unsafe extern "C" {
    fn sigblock_library_first();
}

global_asm!(
    r#"
    .text
    .p2align 4
    .globl  sigblock_library_first
    .hidden sigblock_library_first
    .type   sigblock_library_first,@function
    # r11d: the name. None of the functions takes a floating argument; rax is for those with "...".
sigblock_library_first:
    .cfi_startproc
"#,
    rtld_sys::push_registers!("rax" "rdi" "rsi" "rdx" "rcx" "r8" "r9" "r11"),
    r#"
    sub     rsp, 8
    .cfi_adjust_cfa_offset 8
    mov     edi, r11d
    call    {first}
    add     rsp, 8
    .cfi_adjust_cfa_offset -8
"#,
    rtld_sys::pop_registers!("r11" "r9" "r8" "rcx" "rdx" "rsi" "rdi"),
    r#"
    mov     r10, rax
    pop     rax
    .cfi_adjust_cfa_offset -8
    jmp     r10
    .cfi_endproc
    .size sigblock_library_first, . - sigblock_library_first
"#,
    first = sym first,
);

extern "C" fn first(index: usize) -> usize {
    start::address(index)
}
