// A module closed and another opened in its place: every thread sees the other's initial values. Then one opened again.
#define _GNU_SOURCE
#include "threads.h"
static int (*value)(void);
static int (*zeros)(void);
static void (*fill)(void);
static int first;
static int step(int number) {
    // Only every second thread has a block of the module that goes.
    if (first == 1 && number % 2) return 1;
    int right = zeros() == 0 && value() == first;
    fill();
    return right;
}
int main(void) {
    threads_start();
    int total = 0;
    for (int round = 0; round < 20; round++) {
        int number = round % 3 + 1;
        char file[64];
        snprintf(file, sizeof file, "./reuse/lib%d.so", number);
        void *handle = must_open(file, RTLD_NOW);
        value = (int (*)(void))must_find(handle, "value");
        zeros = (int (*)(void))must_find(handle, "zeros");
        fill = (void (*)(void))must_find(handle, "fill");
        first = number;
        total += step(0) + threads_do(step);
        dlclose(handle);
    }
    threads_end();
    printf("right %d of %d\n", total, 20 * (THREADS + 1));
    return 0;
}
