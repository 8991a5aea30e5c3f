// Threads that exist already and do a step when told to: all of them together, in a barrier.
#ifndef THREADS_H
#define THREADS_H
#include <pthread.h>
#include "../dlfcn/report.h"
enum { THREADS = 8 };
static pthread_barrier_t threads_barrier;
static int (*threads_step)(int);
static int threads_sum;

static void *threads_run(void *number) {
    for (;;) {
        pthread_barrier_wait(&threads_barrier);
        if (!threads_step) return NULL;
        __atomic_fetch_add(&threads_sum, threads_step((int)(long)number), __ATOMIC_SEQ_CST);
        pthread_barrier_wait(&threads_barrier);
    }
}
static pthread_t threads_all[THREADS];

static inline void threads_start(void) {
    pthread_barrier_init(&threads_barrier, NULL, THREADS + 1);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads_all[i], NULL, threads_run, (void *)i)) abort();
}
// The sum over all threads of what `step` returns.
static inline int threads_do(int (*step)(int)) {
    threads_step = step;
    threads_sum = 0;
    pthread_barrier_wait(&threads_barrier);
    if (step) pthread_barrier_wait(&threads_barrier);
    return threads_sum;
}
static inline void threads_end(void) {
    threads_do(NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads_all[i], NULL);
}
// The sum over as many new threads.
static inline void *threads_one(void *step) { return (void *)(long)((int (*)(int))step)(0); }
static inline int threads_new(int (*step)(int)) {
    int sum = 0;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, threads_one, (void *)step);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (int)(long)result;
    }
    return sum;
}
#endif
