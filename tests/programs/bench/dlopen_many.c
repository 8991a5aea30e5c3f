// Opens lib0.so to lib299.so of a directory one after another, keeps them all, and closes them from the last to the first; COUNT
// times. Prints how long each time took, nanoseconds, a line each; the first time is not counted: it warms the page cache.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { LIBRARIES = 300 };

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(int count, char **arguments) {
    static void *handles[LIBRARIES];
    static char names[LIBRARIES][4096];
    if (count < 3) return 2;
    for (int i = 0; i < LIBRARIES; i++) snprintf(names[i], sizeof names[i], "%s/lib%d.so", arguments[1], i);
    long rounds = atol(arguments[2]);
    for (long round = 0; round <= rounds; round++) {
        long start = now();
        for (int i = 0; i < LIBRARIES; i++)
            if (!(handles[i] = dlopen(names[i], RTLD_NOW))) {
                fprintf(stderr, "%s\n", dlerror());
                return 1;
            }
        for (int i = LIBRARIES - 1; i >= 0; i--) dlclose(handles[i]);
        long end = now();
        if (round > 0) printf("%ld\n", end - start);
    }
    return 0;
}
