// 20,000 functions function_0 ... function_19999; each returns 7 times its number plus 3.
    .altmacro
    .macro FUNCTION n
    .globl function_\n
    .type function_\n, @function
function_\n:
    mov $(7 * \n + 3), %eax
    ret
    .size function_\n, . - function_\n
    .endm

    .text
    .set number, 0
    .rept 20000
    FUNCTION %number
    .set number, number + 1
    .endr
    .section .note.GNU-stack, "", @progbits
