// The callees of convention.c.
#include "convention.h"
#include <stdarg.h>

double sum_variadic(int count, ...) {
    va_list list;
    va_start(list, count);
    double sum = 0;
    while (count--) sum += va_arg(list, double);
    va_end(list);
    return sum;
}
double sum_doubles(double a, double b, double c, double d, double e, double f, double g, double h) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
struct large return_large(long a, long b, long c, long d, long e) { return (struct large){a, b, c, d, e}; }
long double sum_long_double(long double a, long double b) { return a + b; }
__attribute__((target("avx2"))) __m256i sum_avx2(__m256i a, __m256i b, __m256i c, __m256i d, __m256i e, __m256i f,
                                                 __m256i g, __m256i h) {
    return _mm256_add_epi64(_mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d)),
                            _mm256_add_epi64(_mm256_add_epi64(e, f), _mm256_add_epi64(g, h)));
}
__attribute__((target("avx512f"))) __m512i sum_avx512(__m512i a, __m512i b, __m512i c, __m512i d, __m512i e, __m512i f,
                                                      __m512i g, __m512i h) {
    return _mm512_add_epi64(_mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d)),
                            _mm512_add_epi64(_mm512_add_epi64(e, f), _mm512_add_epi64(g, h)));
}
__attribute__((regcall)) long sum_regcall(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j,
                                          long k) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k;
}
__attribute__((regcall)) double sum_regcall_double(double a, double b, double c, double d, double e, double f, double g,
                                                  double h, double i, double j, double k, double l, double m, double n,
                                                  double o, double p) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m + 14 * n +
           15 * o + 16 * p;
}
