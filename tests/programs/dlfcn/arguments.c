// A library whose constructor looks at its arguments, its stack and what the process can do at that moment: create a thread and
// wait for it (with -DTHREAD_LOOKS one that looks up a symbol), find symbols, open another library.
#define _GNU_SOURCE
#include <pthread.h>
#include "../remainder.h"
#include "report.h"
extern char **environ;
static __thread int thread_value = 4;

static void *work(void *value) {
    thread_value++;
    *(int *)value = thread_value;
#ifdef THREAD_LOOKS
    return dlsym(RTLD_DEFAULT, "getpid");
#else
    return NULL;
#endif
}

__attribute__((constructor)) static void up(int count, char **arguments, char **environment) {
    char block[64] __attribute__((aligned(16)));
    printf("arguments %d, last %s, environment %d\n", count, count > 1 && arguments ? "given" : "missing", environment == environ);
    printf("aligned %d\n", (uintptr_t)__builtin_frame_address(0) % 16 == 0 && remainder_of(block, 16) == 0);
    pthread_t thread;
    int value = 0;
    void *found = NULL;
    if (pthread_create(&thread, NULL, work, &value)) abort();
    pthread_join(thread, &found);
    printf("thread %d %s\n", value, object_of(found));
    void *handle = must_open("libm.so.6", RTLD_NOW);
    printf("cos in %s\n", object_of(must_find(handle, "cos")));
    dlclose(handle);
}
int which(void) { return thread_value; }
