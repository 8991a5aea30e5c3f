// int call_many(unsigned number): calls function_NUMBER of many.S through this library's own procedure linkage table, each from
// a stub of eight bytes, so that the first call of each number binds a symbol.
    .altmacro
    .macro STUB n
    .p2align 3
    jmp function_\n@PLT
    .endm

    .text
    .globl call_many
    .type call_many, @function
call_many:
    mov %edi, %edi
    lea stubs(%rip), %rax
    lea (%rax, %rdi, 8), %rax
    jmp *%rax
    .size call_many, . - call_many

    .p2align 3
stubs:
    .set number, 0
    .rept 20000
    STUB %number
    .set number, number + 1
    .endr
    .section .note.GNU-stack, "", @progbits
