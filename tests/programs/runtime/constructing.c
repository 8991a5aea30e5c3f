// A library whose constructor does what -DACT=n says.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#if ACT == 1
// Creates and joins threads, which bind, look up and open.
static void *works(void *number) {
    void *handle = dlopen("libm.so.6", RTLD_LAZY);
    double (*root)(double) = handle ? (double (*)(double))dlsym(handle, "sqrt") : NULL;
    long result = root ? (long)root(16) : 0;
    if (handle) dlclose(handle);
    return (void *)(result + (long)number);
}
static int sum;
int value(void) { return sum; }
__attribute__((constructor)) static void begins(void) {
    for (long round = 0; round < 3; round++) {
        pthread_t threads[4];
        for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, works, (void *)i);
        for (int i = 0; i < 4; i++) {
            void *result;
            pthread_join(threads[i], &result);
            sum += (int)(long)result;
        }
    }
}
#elif ACT == 2
// Says that it has begun, and ends when the program has done what it should be able to do meanwhile.
extern int begun, ended;
extern int pipes[2][2];
__attribute__((constructor)) static void begins(void) {
    char byte = 0;
    begun = 1;
    if (write(pipes[0][1], &byte, 1) != 1 || read(pipes[1][0], &byte, 1) != 1) return;
    ended = 1;
}
int value(void) { return ended; }
#else
// Needs the library of ACT 2.
extern int begun, ended;
static int saw;
__attribute__((constructor)) static void begins(void) { saw = ended; }
int value(void);
int second(void) { return saw * 10 + value(); }
#endif
