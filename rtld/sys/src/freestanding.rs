//! memcpy, memmove, memset, memcmp, bcmp, strlen for an image that links no C library.
//!
//! In assembly, because a loop in Rust would be compiled into a call of the very function it defines.
//! Only SSE2 is used, so the upper halves of wider registers survive (ld/trampoline counts on it), and the
//! direction flag is clear on entry by the psABI. Sizes of a loader are small: up to 16 bytes by overlapping
//! words, up to 512 by overlapping 16-byte moves, above that `rep movsb`, which the processor does by lines.

use core::arch::global_asm;

global_asm!(
    r#"
    .text
    .p2align 4
    .globl memcpy
    .hidden memcpy
    .type memcpy,@function
    .globl memmove
    .hidden memmove
    .type memmove,@function
memcpy:
memmove:
    mov     rax, rdi
    cmp     rdx, 16
    jae     3f
    cmp     edx, 8
    jae     2f
    cmp     edx, 4
    jae     1f
    test    edx, edx
    je      9f
    movzx   ecx, byte ptr [rsi]
    cmp     edx, 1
    je      8f
    movzx   r8d, word ptr [rsi + rdx - 2]
    mov     word ptr [rdi + rdx - 2], r8w
8:  mov     byte ptr [rdi], cl
9:  ret
1:  mov     ecx, dword ptr [rsi]
    mov     r8d, dword ptr [rsi + rdx - 4]
    mov     dword ptr [rdi], ecx
    mov     dword ptr [rdi + rdx - 4], r8d
    ret
2:  mov     rcx, qword ptr [rsi]
    mov     r8, qword ptr [rsi + rdx - 8]
    mov     qword ptr [rdi], rcx
    mov     qword ptr [rdi + rdx - 8], r8
    ret
3:  mov     rcx, rdi
    sub     rcx, rsi
    cmp     rcx, rdx
    jb      6f
    cmp     rdx, 512
    ja      5f
    movups  xmm1, xmmword ptr [rsi + rdx - 16]
    lea     r9, [rdi + rdx - 16]
4:  movups  xmm0, xmmword ptr [rsi]
    movups  xmmword ptr [rdi], xmm0
    add     rsi, 16
    add     rdi, 16
    cmp     rdi, r9
    jb      4b
    movups  xmmword ptr [r9], xmm1
    ret
5:  mov     rcx, rdx
    rep     movsb
    ret
6:  movups  xmm1, xmmword ptr [rsi]
    lea     r8, [rsi + rdx]
    lea     r9, [rdi + rdx]
    lea     rcx, [rdi + 16]
7:  movups  xmm0, xmmword ptr [r8 - 16]
    movups  xmmword ptr [r9 - 16], xmm0
    sub     r8, 16
    sub     r9, 16
    cmp     r9, rcx
    ja      7b
    movups  xmmword ptr [rdi], xmm1
    ret
    .size memmove, . - memmove
    .size memcpy, . - memcpy

    .p2align 4
    .globl memset
    .hidden memset
    .type memset,@function
memset:
    mov     r8, rdi
    movzx   eax, sil
    mov     rcx, rdx
    cmp     rdx, 64
    ja      2f
    test    rcx, rcx
    je      3f
1:  mov     byte ptr [rdi + rcx - 1], al
    dec     rcx
    jne     1b
    jmp     3f
2:  rep     stosb
3:  mov     rax, r8
    ret
    .size memset, . - memset

    .p2align 4
    .globl memcmp
    .hidden memcmp
    .type memcmp,@function
    .globl bcmp
    .hidden bcmp
    .type bcmp,@function
memcmp:
bcmp:
    xor     ecx, ecx
1:  lea     r8, [rcx + 8]
    cmp     r8, rdx
    ja      2f
    mov     rax, qword ptr [rdi + rcx]
    mov     r9, qword ptr [rsi + rcx]
    cmp     rax, r9
    jne     4f
    mov     rcx, r8
    jmp     1b
4:  bswap   rax
    bswap   r9
    cmp     rax, r9
    sbb     eax, eax
    or      eax, 1
    ret
2:  cmp     rcx, rdx
    je      3f
    movzx   eax, byte ptr [rdi + rcx]
    movzx   r8d, byte ptr [rsi + rcx]
    inc     rcx
    sub     eax, r8d
    je      2b
    ret
3:  xor     eax, eax
    ret
    .size bcmp, . - bcmp
    .size memcmp, . - memcmp

    .p2align 4
    .globl strlen
    .hidden strlen
    .type strlen,@function
strlen:
    xor     eax, eax
1:  cmp     byte ptr [rdi + rax], 0
    je      2f
    inc     rax
    jmp     1b
2:  ret
    .size strlen, . - strlen
"#
);
