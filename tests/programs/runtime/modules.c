// Three libraries with thread-local blocks of unlike sizes come and go in one place while eight threads stay: each thread sees the
// initial values of the library that is there, whichever block it had under the same module id before.
#define _GNU_SOURCE
#include "../tls/threads.h"
#include <dlfcn.h>
#define ROUNDS 200
static int (*value)(void);
static int (*zeros)(void);
static void (*fill)(void);
static int expected, round_number;
static int step(int number) {
    // In each round another third of the threads has no block.
    if ((number + round_number) % 3 == 0) return 1;
    int right = zeros() == 0 && value() == expected;
    fill();
    return right;
}
int main(void) {
    threads_start();
    int total = 0, ids = 0;
    size_t seen[8] = {0};
    for (round_number = 0; round_number < ROUNDS; round_number++) {
        expected = round_number % 3 + 1;
        char file[64];
        snprintf(file, sizeof file, "./modules/lib%d.so", expected);
        void *handle = must_open(file, RTLD_NOW);
        size_t id = 0;
        dlinfo(handle, RTLD_DI_TLS_MODID, &id);
        int known = 0;
        for (int i = 0; i < ids; i++) known |= seen[i] == id;
        if (!known && ids < 8) seen[ids++] = id;
        value = (int (*)(void))must_find(handle, "value");
        zeros = (int (*)(void))must_find(handle, "zeros");
        fill = (void (*)(void))must_find(handle, "fill");
        total += step(THREADS) + threads_do(step);
        dlclose(handle);
    }
    threads_end();
    printf("right %d of %d, module ids %d\n", total, ROUNDS * (THREADS + 1), ids);
    return 0;
}
