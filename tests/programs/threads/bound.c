// 8 threads call 64 functions for the first time, all at once: every first call is bound by several threads together.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include "names.h"
#define DECLARE(n) long f##n(long);
FUNCTIONS(DECLARE)
static pthread_barrier_t barrier;
#define CALL(n) \
    pthread_barrier_wait(&barrier); \
    sum = f##n(sum);
static void *work(void *value) {
    long sum = (long)value;
    FUNCTIONS(CALL)
    return (void *)(sum - (long)value);
}
int main(void) {
    pthread_t threads[8];
    long sum = 0;
    pthread_barrier_init(&barrier, NULL, 8);
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], NULL, work, (void *)(i * 100));
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    printf("%ld\n", sum);
    return 0;
}
