# Symbols of odd kinds: an absolute value, an absolute zero, data without a type.
    .globl absolute_value, absolute_zero, typeless
    .set absolute_value, 0x1234
    .set absolute_zero, 0
    .data
typeless:
    .long 77
    .section .note.GNU-stack,"",@progbits
