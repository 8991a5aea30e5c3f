// The library's side of the register probe: saves everything as it sees it and returns with nothing changed but flags.
// Its level word and its `seen` are its own (hidden names), set and read through functions in keep.c, so that no
// register is needed to reach them.
#include "macros.S"

    .text
    .globl spy, spy_chosen
    .hidden spy_chosen
    .type spy, @function
    .type spy_chosen, @function
spy:
spy_chosen:
    SAVE spy_seen, spy_level(%rip)
    // SAVE changed only the flags.
    ret
    .size spy, . - spy

    .bss
    .balign 64
    .globl spy_seen, spy_level
    .hidden spy_seen, spy_level
spy_seen: .zero 2304
spy_level: .zero 64
    .section .note.GNU-stack, "", @progbits
