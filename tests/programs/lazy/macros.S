// Saving and loading a struct state (state.h) by assembly alone, with no register as a base: the level is read from
// memory before anything is loaded, and after everything is saved.

.macro SAVE where, level_word
    mov %rax, \where+0(%rip)
    mov %rcx, \where+8(%rip)
    mov %rdx, \where+16(%rip)
    mov %rbx, \where+24(%rip)
    mov %rsp, \where+32(%rip)
    mov %rbp, \where+40(%rip)
    mov %rsi, \where+48(%rip)
    mov %rdi, \where+56(%rip)
    mov %r8, \where+64(%rip)
    mov %r9, \where+72(%rip)
    mov %r10, \where+80(%rip)
    mov %r11, \where+88(%rip)
    mov %r12, \where+96(%rip)
    mov %r13, \where+104(%rip)
    mov %r14, \where+112(%rip)
    mov %r15, \where+120(%rip)
    pushf
    pop \where+128(%rip)
    stmxcsr \where+136(%rip)
    fnstcw \where+140(%rip)
    fstpt \where+144(%rip)
    fldt \where+144(%rip)
    cmpl $1, \level_word
    je 1f
    jg 2f
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movups %xmm\n, \where+256+64*\n(%rip)
    .endr
    jmp 3f
1:
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmovups %ymm\n, \where+256+64*\n(%rip)
    .endr
    jmp 3f
2:
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovups %zmm\n, \where+256+64*\n(%rip)
    .endr
    .irp n,0,1,2,3,4,5,6,7
    kmovq %k\n, \where+160+8*\n(%rip)
    .endr
3:
.endm

.macro LOAD where, level_word
    cmpl $1, \level_word
    je 1f
    jg 2f
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movups \where+256+64*\n(%rip), %xmm\n
    .endr
    jmp 3f
1:
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmovups \where+256+64*\n(%rip), %ymm\n
    .endr
    jmp 3f
2:
    .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovups \where+256+64*\n(%rip), %zmm\n
    .endr
    .irp n,0,1,2,3,4,5,6,7
    kmovq \where+160+8*\n(%rip), %k\n
    .endr
3:
    ldmxcsr \where+136(%rip)
    fldcw \where+140(%rip)
    fldt \where+144(%rip)
    mov \where+0(%rip), %rax
    mov \where+8(%rip), %rcx
    mov \where+16(%rip), %rdx
    mov \where+24(%rip), %rbx
    mov \where+40(%rip), %rbp
    mov \where+48(%rip), %rsi
    mov \where+56(%rip), %rdi
    mov \where+64(%rip), %r8
    mov \where+72(%rip), %r9
    mov \where+80(%rip), %r10
    mov \where+88(%rip), %r11
    mov \where+96(%rip), %r12
    mov \where+104(%rip), %r13
    mov \where+112(%rip), %r14
    mov \where+120(%rip), %r15
.endm
