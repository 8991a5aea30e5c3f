// A program without any C library: looks at what the entry point is given, calls its library, then the finaliser that it
// got in rdx (psABI, "Process Initialization"), and leaves.
    .globl _start
    .type _start, @function
    .text
_start:
    xor %ebp, %ebp
    mov %rdx, %r12              // the function to register with atexit
    mov %rsp, %rdi              // argument count, arguments, environment, auxiliary vector
    mov %rsp, %rsi
    and $15, %esi               // the psABI promises 0
    and $-16, %rsp
    call bare_main@PLT
    mov %eax, %ebx
    test %r12, %r12
    jz 1f
    call *%r12
1:
    mov %ebx, %edi
    mov $231, %eax              // exit_group
    syscall
    hlt
    .size _start, . - _start
    .section .note.GNU-stack, "", @progbits
