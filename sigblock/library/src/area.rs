//! Each thread's state: one cache line of static TLS, zero in a new thread, at a fixed distance from the thread pointer. A
//! library that the program opened later gets it from what the C library keeps free for such.

use core::arch::{asm, global_asm};

global_asm!(
    r#"
    .section .tbss.sigblock_library_state,"awT",@nobits
    .p2align 6
    .globl  sigblock_library_state
    .hidden sigblock_library_state
    .type   sigblock_library_state,@object
    .size   sigblock_library_state, {size}
sigblock_library_state:
    .zero   {size}
    .text
"#,
    size = const sigblock::AREA.0,
);

const _: () = assert!(sigblock::AREA.1 == 64);

/// How far below the thread pointer it is.
pub fn distance() -> usize {
    let offset: usize;
    // SAFETY: reads the offset that the loader has stored for the variable above.
    unsafe {
        asm!(
            "mov {}, qword ptr [rip + sigblock_library_state@gottpoff]",
            out(reg) offset,
            options(nostack, readonly, preserves_flags)
        );
    }
    offset.wrapping_neg()
}
