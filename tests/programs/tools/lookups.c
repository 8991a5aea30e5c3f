// Keeps the loader busy, so that a sampling profiler finds it at work.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    long found = 0;
    for (int i = 0; i < 2000000; i++)
        found += dlsym(RTLD_DEFAULT, "qsort") != NULL;
    for (int i = 0; i < 200; i++)
        dlclose(dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL));
    printf("found %ld\n", found);
    return 0;
}
