// The three callees of t3.c.
#include <immintrin.h>
#include <stdarg.h>

struct large { long a, b, c, d, e; };
#ifdef WIDE
typedef __m512i vector;
#define ADD _mm512_add_epi64
#else
typedef __m256i vector;
#define ADD _mm256_add_epi64
#endif

vector sum_vectors(vector a, vector b, vector c, vector d, vector e, vector f, vector g, vector h) {
    return ADD(ADD(ADD(a, b), ADD(c, d)), ADD(ADD(e, f), ADD(g, h)));
}
double sum_variadic(int count, ...) {
    va_list list;
    va_start(list, count);
    double sum = 0;
    while (count--) sum += va_arg(list, double);
    va_end(list);
    return sum;
}
struct large return_large(long a, long b, long c, long d, long e) { return (struct large){a, b, c, d, e}; }
