// 64 threads, 50 rounds: each starts with fresh thread-local data, allocates, and calls functions that are bound lazily.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static __thread int number = 3;
static __thread char zeros[1000];
static void *work(void *argument) {
    long right = number == 3 && zeros[0] == 0 && zeros[999] == 0;
    number += (int)(long)argument;
    memset(zeros, 1, sizeof zeros);
    char *block = malloc(100 + (size_t)argument);
    right &= block != NULL && number == 3 + (long)argument;
    free(block);
    return (void *)right;
}
int main(void) {
    static pthread_t threads[64];
    long right = 0;
    for (int round = 0; round < 50; round++) {
        for (long i = 0; i < 64; i++)
            if (pthread_create(&threads[i], NULL, work, (void *)i)) abort();
        for (int i = 0; i < 64; i++) {
            void *result;
            pthread_join(threads[i], &result);
            right += (long)result;
        }
    }
    printf("%ld\n", right);
    return 0;
}
