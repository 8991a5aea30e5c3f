// Functions that are called for the first time with as many arguments in registers as their convention allows.
// Built by clang, for regcall; the wide ones by target attribute. (Its vectorcall decorates names with "@@", which no ELF
// linker takes, and uses fewer registers than regcall.)
#pragma once
#include <immintrin.h>

struct large { long a, b, c, d, e; };
double sum_variadic(int count, ...);
double sum_doubles(double, double, double, double, double, double, double, double);
struct large return_large(long, long, long, long, long);
long double sum_long_double(long double, long double);
__attribute__((target("avx2"))) __m256i sum_avx2(__m256i, __m256i, __m256i, __m256i, __m256i, __m256i, __m256i, __m256i);
__attribute__((target("avx512f"))) __m512i sum_avx512(__m512i, __m512i, __m512i, __m512i, __m512i, __m512i, __m512i, __m512i);
// x86-64 regcall: eleven integers (rax rcx rdx rdi rsi r8 r9 r12 r13 r14 r15), sixteen vectors.
__attribute__((regcall)) long sum_regcall(long, long, long, long, long, long, long, long, long, long, long);
__attribute__((regcall)) double sum_regcall_double(double, double, double, double, double, double, double, double,
                                                  double, double, double, double, double, double, double, double);
