// dlerror: cleared by reading, by the next call that succeeds, replaced by the next that fails, and one for each thread.
#define _GNU_SOURCE
#include <pthread.h>
#include "report.h"

static pthread_barrier_t barrier;

static void *other(void *unused) {
    printf("thread: %s\n", error_text());
    dlopen("./nosuch-thread.so", RTLD_NOW);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    printf("thread: %s\n", error_text());
    printf("thread: %s\n", error_text());
    return unused;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("at start: %s\n", error_text());
    dlopen("./nosuch.so", RTLD_NOW);
    printf("first: %s\n", error_text());
    printf("again: %s\n", error_text());
    dlopen("./nosuch.so", RTLD_NOW);
    dlsym(RTLD_DEFAULT, "nosuch");
    printf("the later one: %s\n", strstr(error_text(), "undefined symbol: nosuch") ? "dlsym" : "another");
    dlopen("./nosuch.so", RTLD_NOW);
    void *handle = must_open("libm.so.6", RTLD_NOW);
    printf("after success: %s\n", error_text());
    dlopen("./nosuch.so", RTLD_NOW);
    dlsym(handle, "cos");
    printf("after dlsym: %s\n", error_text());
    dlopen("./nosuch.so", RTLD_NOW);
    Dl_info found;
    printf("dladdr %d\n", dladdr(main, &found) != 0);
    printf("dladdr leaves it: %s\n", error_text());
    pthread_barrier_init(&barrier, NULL, 2);
    dlopen("./nosuch-main.so", RTLD_NOW);
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    pthread_barrier_wait(&barrier);
    printf("main: %s\n", error_text());
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    // A thread that ends with an unread error.
    pthread_barrier_init(&barrier, NULL, 1);
    for (int i = 0; i < 100; i++) {
        pthread_create(&thread, NULL, (void *(*)(void *))dlopen, "./nosuch.so");
        pthread_join(thread, NULL);
    }
    printf("end: %s\n", error_text());
    return 0;
}
