/* The start of a position-independent program that has text relocations itself: `start_value` returns *own + 2. */
        .text
        .globl  start_value
        .type   start_value, @function
start_value:
        movabsq $own, %rax
        movl    (%rax), %eax
        addl    $2, %eax
        ret
        .data
own:    .long   40
        .section .note.GNU-stack, "", @progbits
