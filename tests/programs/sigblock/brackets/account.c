// account THREADS SECTIONS HELD: so many threads open so many sections each, one in the other, and the main thread
// holds so many signals. What the loader says of it at exit is compared with that.
#define _GNU_SOURCE
#include "../semantics/section.h"
#include <stdio.h>
#include <stdlib.h>

static long sections;
static void *opens(void *unused) {
    for (long i = 0; i < sections; i++) {
        enter();
        enter();
        leave();
        leave();
    }
    return unused;
}
int main(int argc, char **argv) {
    pthread_t threads[64];
    if (argc < 4) return 90;
    int count = atoi(argv[1]), held = atoi(argv[3]);
    sections = atol(argv[2]);
    signal(SIGUSR1, count_run);
    if (count > 64) return 91;
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], 0, opens, 0)) return 92;
    for (int i = 0; i < count; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < held; i++) {
        enter();
        raise(SIGUSR1);
        leave();
    }
    struct sigblock_counts counts = {0, 0};
    if (sigblock_counts) sigblock_counts(&counts);
    printf("%s %lu %lu %d\n", backend(), counts.sections, counts.held, (int)runs);
    return 0;
}
