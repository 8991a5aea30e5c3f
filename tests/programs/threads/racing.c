// Threads are created and joined, look symbols up and access thread-local data while others open and close modules with such
// data (BZ 19329).
#define _GNU_SOURCE
#include "../dlfcn/report.h"
#include <pthread.h>
static int stop;
static void *small(void *unused) {
    Dl_info found;
    long right = dlsym(RTLD_DEFAULT, "getpid") != NULL && dladdr((void *)&stop, &found) != 0;
    (void)unused;
    return (void *)right;
}
static void *creates(void *unused) {
    long wrong = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        pthread_t thread;
        void *result = NULL;
        if (pthread_create(&thread, NULL, small, NULL)) abort();
        pthread_join(thread, &result);
        wrong += result == NULL;
    }
    (void)unused;
    return (void *)wrong;
}
// A new thread's first value of a module that has just been opened.
static void *first(void *value) { return (void *)(long)((int (*)(void))value)(); }
static void *opens(void *which) {
    long wrong = 0;
    for (int round = 0; round < 300; round++) {
        char file[64];
        snprintf(file, sizeof file, "./racing/lib%ld.so", ((long)which + round) % 4);
        void *handle = must_open(file, RTLD_NOW | RTLD_LOCAL);
        int (*value)(void) = (int (*)(void))must_find(handle, "value");
        wrong += value() < 5;
        pthread_t thread;
        if (pthread_create(&thread, NULL, first, (void *)value)) abort();
        void *seen = NULL;
        pthread_join(thread, &seen);
        wrong += (long)seen != 5;
        dlclose(handle);
    }
    return (void *)wrong;
}
int main(void) {
    pthread_t creators[4], openers[2];
    long wrong = 0;
    void *result;
    for (int i = 0; i < 4; i++) pthread_create(&creators[i], NULL, creates, NULL);
    for (long i = 0; i < 2; i++) pthread_create(&openers[i], NULL, opens, (void *)(i * 2));
    for (int i = 0; i < 2; i++) {
        pthread_join(openers[i], &result);
        wrong += (long)result;
    }
    stop = 1;
    for (int i = 0; i < 4; i++) {
        pthread_join(creators[i], &result);
        wrong += (long)result;
    }
    printf("wrong %ld\n", wrong);
    return 0;
}
