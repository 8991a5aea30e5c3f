// Opens and closes a library COUNT times and prints how long each took, dlopen and dlclose together, nanoseconds, a line each.
// The first time is not counted: it warms the page cache and what is bound once.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    long rounds = atol(arguments[2]);
    for (long round = 0; round <= rounds; round++) {
        long start = now();
        void *handle = dlopen(arguments[1], RTLD_NOW);
        if (!handle) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        dlclose(handle);
        long end = now();
        if (round > 0) printf("%ld\n", end - start);
        if (dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD)) {
            fprintf(stderr, "still there\n");
            return 1;
        }
    }
    return 0;
}
