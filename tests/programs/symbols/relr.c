/* Many relative relocations, packed by the linker: every pointer must point to its own element. -DLIBRARY is the library. */
#include <stdio.h>
#define COUNT 400
int library_right(void);
#define P4(n) &cells[n], &cells[n + 1], &cells[n + 2], &cells[n + 3]
#define P16(n) P4(n), P4(n + 4), P4(n + 8), P4(n + 12)
#define P64(n) P16(n), P16(n + 16), P16(n + 32), P16(n + 48)
static int cells[COUNT];
static int *dense[] = {P64(0), P64(64), P64(128), P64(192), P64(256)};
static struct { int *pointer; long gap[9]; } sparse[] = {{&cells[1], {0}}, {&cells[3], {0}}, {&cells[5], {0}}, {&cells[7], {0}}};
static int right(void) {
    int count = 0;
    for (unsigned n = 0; n < sizeof dense / sizeof *dense; n++)
        count += ((int *volatile *)dense)[n] == &cells[n];
    for (unsigned n = 0; n < 4; n++)
        count += *(int *volatile *)&sparse[n].pointer == &cells[2 * n + 1];
    return count;
}
#ifdef LIBRARY
int library_right(void) { return right(); }
#else
int main(void) {
    printf("%d %d\n", right(), library_right());
    return 0;
}
#endif
