// probe WHICH LEVEL: fills every register with a pattern, calls an unbound function of a library, and compares what the
// callee saw and what came back. LEVEL is sse, avx2, avx512 or best. Exit 0: all equal; 1: the differences are printed;
// 77: the processor lacks the level.
#include "state.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

_Static_assert(offsetof(struct state, flags) == 128 && offsetof(struct state, mxcsr) == 136 &&
               offsetof(struct state, x87_control) == 140 && offsetof(struct state, x87_top) == 144 &&
               offsetof(struct state, masks) == 160 && offsetof(struct state, vectors) == 256 &&
               sizeof(struct state) == 2304, "state.S knows these by number");

int level;
void set_spy_level(int);
const struct state *get_spy_seen(void);
int get_resolver_runs(void);

static int differences;
static const char *const names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                      "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"};

static void differ(const char *when, const char *name, int number) {
    differences++;
    if (number < 0) printf("%s: %s differs\n", when, name);
    else printf("%s: %s%d differs\n", when, name, number);
}

// general: a bit for each general register that must be equal; vectors: bytes of each vector that must be, 0 for none.
static void compare(const char *when, const struct state *got, unsigned general, size_t width, int count, int masks) {
    for (int i = 0; i < 16; i++)
        if (general >> i & 1 && got->general[i] != wanted.general[i]) differ(when, names[i], -1);
    if (got->mxcsr != wanted.mxcsr) differ(when, "mxcsr", -1);
    if (got->x87_control != wanted.x87_control) differ(when, "x87 control word", -1);
    if (memcmp(got->x87_top, wanted.x87_top, 10)) differ(when, "st(0)", -1);
    if (got->flags & 0x400) differ(when, "direction flag", -1);
    for (int i = 0; i < count; i++)
        if (memcmp(got->vectors[i], wanted.vectors[i], width)) differ(when, level == 2 ? "zmm" : level == 1 ? "ymm" : "xmm", i);
    for (int i = 0; i < 8 && masks; i++)
        if (got->masks[i] != wanted.masks[i]) differ(when, "k", i);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    __builtin_cpu_init();
    int best = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512f") ? 2 : __builtin_cpu_supports("avx2") ? 1 : 0;
    level = !strcmp(argv[2], "avx512") ? 2 : !strcmp(argv[2], "avx2") ? 1 : !strcmp(argv[2], "sse") ? 0 : best;
    if (level > best) return printf("the processor has no %s\n", argv[2]), 77;
    set_spy_level(level);

    for (int i = 0; i < 16; i++) wanted.general[i] = 0x1111111111111111ul * (unsigned)i ^ 0xfedcba9876543210ul;
    wanted.mxcsr = 0x1f80 & ~0x80 | 0x6000 | 0x1000; // rounding toward zero, zero-divide unmasked
    wanted.mxcsr |= 0x80;                            // ... masked again: a fault would hide the comparison
    wanted.x87_control = 0x0f3f | 0x0040;            // rounding toward zero, extended precision
    long double top = 3.14159265358979323846264338327950288L;
    memcpy(wanted.x87_top, &top, 10);
    for (int i = 0; i < 8; i++) wanted.masks[i] = 0x8040201008040201ul * (unsigned)(i + 1);
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 64; j++) wanted.vectors[i][j] = (uint8_t)(i * 64 + j * 7 + 1);

    static const size_t widths[3] = {16, 32, 64};
    size_t width = widths[level];
    int count = level == 2 ? 32 : 16;
    const unsigned all = 0xffff, not_rsp = 0xffff & ~(1u << 4);
    const char *which = argv[1];
    int runs = 0;
    if (!strcmp(which, "spy") || !strcmp(which, "ifunc")) {
        runs = get_resolver_runs();
        if (!strcmp(which, "spy")) call_spy(); else call_spy_ifunc();
        runs = get_resolver_runs() - runs;
        compare("seen by the callee", get_spy_seen(), all, width, count, level == 2);
        compare("after the return", &left_over, not_rsp, width, count, level == 2);
    } else if (!strcmp(which, "preserve_most")) {
        call_keep_most(); // clang: all general registers but r11
        compare("after the return", &left_over, not_rsp & ~(1u << 11), 0, 0, 0);
    } else if (!strcmp(which, "preserve_all")) {
        call_keep_all();  // ... and the vector registers, in the width the callee was compiled for
        compare("after the return", &left_over, not_rsp & ~(1u << 11), 16, 16, 0);
    } else {
        return 2;
    }
    printf("%s %s: %s, resolver ran %d times in the call\n", which, level == 2 ? "avx512" : level == 1 ? "avx2" : "sse",
           differences ? "differs" : "equal", runs);
    return differences != 0;
}
