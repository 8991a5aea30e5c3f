// Callbacks of eight threads change what they share without a lock of their own while two other threads open and close libraries: no
// change is lost, and no two callbacks are ever inside together. Then, when nothing changes any more, the counts add up.
#define _GNU_SOURCE
#include "../dlfcn/report.h"
#include <link.h>
#include <pthread.h>
#include <sched.h>
enum { THREADS = 8, ROUNDS = 300 };
static volatile long inside, together, backwards;
static volatile int done;
static unsigned long long adds, subs;
static long visits[THREADS], shared;
static int look(struct dl_phdr_info *info, size_t size, void *own) {
    (void)size;
    together += inside++ != 0;
    long seen = shared;
    // Long enough to be interrupted at times.
    if (seen % 64 == 0) sched_yield();
    shared = seen + 1;
    ++*(long *)own;
    // The counts grow, also from one thread's iteration to another's.
    backwards += info->dlpi_adds < adds || info->dlpi_subs < subs;
    adds = info->dlpi_adds;
    subs = info->dlpi_subs;
    inside--;
    return 0;
}
static void *iterates(void *own) {
    for (int round = 0; round < ROUNDS; round++) dl_iterate_phdr(look, own);
    return own;
}
static void *opens(void *file) {
    while (!done) dlclose(must_open(file, RTLD_NOW));
    return file;
}
static int count(struct dl_phdr_info *info, size_t size, void *objects) {
    (void)size;
    adds = info->dlpi_adds;
    subs = info->dlpi_subs;
    ++*(unsigned long long *)objects;
    return 0;
}
int main(void) {
    pthread_t threads[THREADS], openers[2];
    pthread_create(&openers[0], NULL, opens, "./serial/libone.so");
    pthread_create(&openers[1], NULL, opens, "./serial/libtwo.so");
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, iterates, &visits[i]);
    long sum = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += visits[i];
    }
    done = 1;
    for (int i = 0; i < 2; i++) pthread_join(openers[i], NULL);
    printf("lost %ld, together %ld, backwards %ld\n", sum - shared, together, backwards);
    unsigned long long objects = 0, before[2];
    dl_iterate_phdr(count, &objects);
    printf("objects %d", adds - subs == objects);
    before[0] = adds, before[1] = subs;
    void *handle = must_open("./serial/libone.so", RTLD_NOW);
    dl_iterate_phdr(count, &objects);
    printf(", opened %llu %llu", adds - before[0], subs - before[1]);
    dlclose(handle);
    dl_iterate_phdr(count, &objects);
    printf(", closed %llu %llu\n", adds - before[0], subs - before[1]);
    return 0;
}
