// convention WHICH: one first call each; prints `WHICH right` or `WHICH wrong`. Exit 77: the processor lacks it.
#include "convention.h"
#include <stdio.h>
#include <string.h>

static int verdict(const char *which, int right) {
    printf("%s %s\n", which, right ? "right" : "wrong");
    return !right;
}

// Every lane of every argument differs, so that an exchanged or half-kept register changes the sum of some lane.
static long lane(int argument, int lane_number) { return 1L << (argument * 7) | (long)(lane_number + 1) << 3; }

__attribute__((target("avx2"), noinline)) static int avx2(void) {
    long in[8][4], out[4];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 4; j++) in[i][j] = lane(i, j);
#define A(n) _mm256_loadu_si256((void *)in[n])
    _mm256_storeu_si256((void *)out, sum_avx2(A(0), A(1), A(2), A(3), A(4), A(5), A(6), A(7)));
    int right = 1;
    for (int j = 0; j < 4; j++) {
        long sum = 0;
        for (int i = 0; i < 8; i++) sum += in[i][j];
        right &= sum == out[j];
    }
    return right;
}

__attribute__((target("avx512f"), noinline)) static int avx512(void) {
    long in[8][8], out[8];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) in[i][j] = lane(i, j);
#define B(n) _mm512_loadu_si512(in[n])
    _mm512_storeu_si512(out, sum_avx512(B(0), B(1), B(2), B(3), B(4), B(5), B(6), B(7)));
    int right = 1;
    for (int j = 0; j < 8; j++) {
        long sum = 0;
        for (int i = 0; i < 8; i++) sum += in[i][j];
        right &= sum == out[j];
    }
    return right;
}

int main(int argc, char **argv) {
    const char *which = argc == 2 ? argv[1] : "";
    volatile double one = 1; // keeps the sums from being computed at compile time
    __builtin_cpu_init();
    if (!strcmp(which, "variadic"))
        return verdict(which, sum_variadic(8, one, 2 * one, 3 * one, 4 * one, 5 * one, 6 * one, 7 * one, 8 * one) == 36);
    if (!strcmp(which, "sse")) return verdict(which, sum_doubles(one, 2, 3, 4, 5, 6, 7, 8) == 204);
    if (!strcmp(which, "structure")) {
        struct large s = return_large(1, 2, 3, 4, 5);
        return verdict(which, s.a == 1 && s.b == 2 && s.c == 3 && s.d == 4 && s.e == 5);
    }
    if (!strcmp(which, "x87")) return verdict(which, sum_long_double(1.5L, 2.25L) == 3.75L);
    if (!strcmp(which, "regcall")) return verdict(which, sum_regcall(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) == 506);
    if (!strcmp(which, "regcall-sse"))
        return verdict(which, sum_regcall_double(one, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16) == 1496);
    if (!strcmp(which, "avx2")) {
        if (!__builtin_cpu_supports("avx2")) return 77;
        return verdict(which, avx2());
    }
    if (!strcmp(which, "avx512")) {
        if (!__builtin_cpu_supports("avx512f")) return 77;
        return verdict(which, avx512());
    }
    return 2;
}
