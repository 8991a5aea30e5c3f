// The processor state that the register probe loads, that the callee sees, and that is left after the return.
// state.S knows these offsets by number; probe.c asserts them.
#pragma once
#include <stdint.h>

struct state {
    uint64_t general[16];      // 0: rax rcx rdx rbx rsp rbp rsi rdi r8..r15
    uint64_t flags;            // 128
    uint32_t mxcsr;            // 136
    uint16_t x87_control;      // 140
    uint16_t unused;           // 142
    uint8_t x87_top[16];       // 144: st(0), ten bytes
    uint64_t masks[8];         // 160: k0..k7
    uint8_t unused2[32];       // 224
    uint8_t vectors[32][64];   // 256: zmm0..zmm31; narrower levels use the first 16 or 32 bytes of each
};                             // 2304 bytes

// 0: SSE, 1: AVX (ymm), 2: AVX-512. Read by the assembly on both sides.
extern int level;
extern struct state wanted, seen, left_over;

// Loads `wanted`, calls the function through the program's PLT, stores what is left into `left_over`.
void call_spy(void);
void call_spy_ifunc(void);
void call_keep_most(void);
void call_keep_all(void);
