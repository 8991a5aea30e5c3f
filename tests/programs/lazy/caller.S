// The program's side of the register probe: everything loaded with a pattern, one call through the PLT, everything saved.
#include "macros.S"

.macro PROBE name, callee
    .globl \name
    .type \name, @function
\name:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    sub $24, %rsp
    stmxcsr 8(%rsp)
    fnstcw 12(%rsp)
    mov %rsp, wanted+32(%rip)
    subq $8, wanted+32(%rip)            // as the callee sees it: the return address lies below
    LOAD wanted, level(%rip)
    call \callee@PLT
    SAVE left_over, level(%rip)
    fstp %st(0)
    ldmxcsr 8(%rsp)
    fldcw 12(%rsp)
    add $24, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .size \name, . - \name
.endm

    .text
    PROBE call_spy, spy
    PROBE call_spy_ifunc, spy_ifunc
    PROBE call_keep_most, keep_most
    PROBE call_keep_all, keep_all

    .bss
    .balign 64
    .globl wanted, left_over
wanted: .zero 2304
left_over: .zero 2304
    .section .note.GNU-stack, "", @progbits
