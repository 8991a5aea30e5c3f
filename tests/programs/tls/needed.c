// As opened.c for a library that the program needs.
#define _GNU_SOURCE
#include "threads.h"
int value(void), misaligned(void), zeros(void), locals(void);
void fill(void);
static int fresh(int number) {
    (void)number;
    int right = zeros() == 0 && misaligned() == 0 && locals() == 713;
    right &= value() == FIRST;
    right &= value() == FIRST + 2;
    fill();
    return right && locals() == 935;
}
int main(void) {
    threads_start();
    printf("main %d", fresh(0));
    printf(" existing %d", threads_do(fresh));
    threads_end();
    printf(" new %d\n", threads_new(fresh));
    return 0;
}
