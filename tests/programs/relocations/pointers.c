/* Hundreds of relative relocations, some of them far apart, for RELA and RELR; with -DLIBRARY the library. */
#include <stdio.h>

#define ONE(array, index) &array[index]
#define TEN(array, first) ONE(array, first), ONE(array, first + 1), ONE(array, first + 2), ONE(array, first + 3), ONE(array, first + 4), \
    ONE(array, first + 5), ONE(array, first + 6), ONE(array, first + 7), ONE(array, first + 8), ONE(array, first + 9)

#ifdef LIBRARY
#define SUM library_sum
#else
#define SUM program_sum
#endif

static int targets[100] = { [0] = 1, [50] = 2, [99] = 4 };
static int *const dense[100] = { TEN(targets, 0), TEN(targets, 10), TEN(targets, 20), TEN(targets, 30), TEN(targets, 40), TEN(targets, 50),
    TEN(targets, 60), TEN(targets, 70), TEN(targets, 80), TEN(targets, 90) };
static int *sparse[3000] = { [0] = &targets[0], [63] = &targets[50], [64] = &targets[50], [126] = &targets[99], [127] = &targets[99],
    [2999] = &targets[99] };
/* Not aligned to a word: RELR cannot say it. */
static struct __attribute__((packed)) { char pad; int *pointer; } odd = { 1, &targets[99] };

int SUM(void)
{
    int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += dense[i] == &targets[i];
    for (int i = 0; i < 3000; i++)
        sum += sparse[i] ? 1000 * *sparse[i] : 0;
    return sum + (odd.pointer == &targets[99]) * 1000000;
}

#ifndef LIBRARY
extern int library_sum(void);
int main(void)
{
    printf("%d %d\n", program_sum(), library_sum());
    return 0;
}
#endif
