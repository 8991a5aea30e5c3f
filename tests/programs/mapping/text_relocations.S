/* Text that holds absolute addresses: of a symbol the program defines, and of data of the library itself.
   `text_value` returns *program_value + own, `text_page` the address of its own code. */
        .text
        .globl  text_value, text_page
        .type   text_value, @function
        .type   text_page, @function
text_value:
.Lown_code:
        movabsq $program_value, %rax
        movl    (%rax), %eax
        movabsq $own, %rcx
        addl    (%rcx), %eax
        ret
        .size   text_value, . - text_value
text_page:
        leaq    .Lown_code(%rip), %rax
        ret
        .size   text_page, . - text_page
        .data
own:    .long   5
        .section .note.GNU-stack, "", @progbits
