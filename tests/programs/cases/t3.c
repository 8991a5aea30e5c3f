// The first call of three functions from a signal handler on a small alternate stack. Prints how many bytes of that
// stack were touched (0x5a bytes at its low end are untouched).
#include <immintrin.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

struct large { long a, b, c, d, e; };
#ifdef WIDE // the 64-byte variant
typedef __m512i vector;
#else
typedef __m256i vector;
#endif
enum { LANES = sizeof(vector) / sizeof(long) };
vector sum_vectors(vector, vector, vector, vector, vector, vector, vector, vector);
double sum_variadic(int, ...);
struct large return_large(long, long, long, long, long);

static volatile sig_atomic_t bad;

static void handler(int number) {
    (void)number;
    vector in[8], out;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < LANES; j++) ((long *)&in[i])[j] = 1L << (i * 7) | (j + 1);
    out = sum_vectors(in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]);
    for (int j = 0; j < LANES; j++) {
        long sum = 0;
        for (int i = 0; i < 8; i++) sum += ((long *)&in[i])[j];
        if (((long *)&out)[j] != sum) bad |= 1;
    }
    if (sum_variadic(8, 1., 2., 3., 4., 5., 6., 7., 8.) != 36.) bad |= 2;
    struct large large = return_large(1, 2, 3, 4, 5);
    if (large.a != 1 || large.e != 5) bad |= 4;
}

int main(void) {
    size_t least = getauxval(AT_MINSIGSTKSZ);
    if (least < 2048) least = 2048;
    size_t size = (least + 2 * 4096 + 4095) / 4096 * 4096;
    char *stack = aligned_alloc(4096, size);
    if (!stack) return 2;
    memset(stack, 0x5a, size);
    stack_t alternate = {.ss_sp = stack, .ss_size = size};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&alternate, 0) || sigaction(SIGUSR1, &action, 0)) return 2;
    raise(SIGUSR1);
    size_t untouched = 0;
    while (untouched < size && stack[untouched] == 0x5a) untouched++;
    printf("bad %d touched %zu of %zu\n", (int)bad, size - untouched, size);
    return bad;
}
