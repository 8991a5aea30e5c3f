// A program for memcheck: threads, a plug-in, failed loads; with an argument also the mistakes that memcheck reports.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread int own;

static void *work(void *argument) {
    char *text = strdup(argument);
    own = (int)strlen(text);
    void *handle = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *(*version)(void) = (const char *(*)(void))dlsym(handle, "zlibVersion");
    own += version()[0] > 0;
    dlclose(handle);
    if (dlopen("/nonexistent/library.so", RTLD_NOW) || !dlerror() || dlsym(RTLD_DEFAULT, "nonesuch") || !dlerror())
        own = -1;
    free(text);
    return (void *)(long)own;
}

__attribute__((noinline)) static void lose(void) {
    char *volatile lost = malloc(33);
    lost[0] = 1;
    lost = NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[3];
    long sum = 0;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, "thread");
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    printf("sum %ld\n", sum);
    if (count > 1) {
        int *values = malloc(8);
        if (values[1])
            puts("never known");
        free(values);
        printf("%d\n", values[0] == 17);
        lose();
    }
    return 0;
}
