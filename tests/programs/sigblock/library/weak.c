// weak PATH NAME: what a library cannot do, and a loader can. PATH and NAME are two builds of constructed.c, one with a slash and
// one that is searched for. Prints KEY=VALUE; the values under ld-linux and under our loader are opposites.
#define _GNU_SOURCE
#include "sigblock.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

volatile int runs, seen_in_constructor;
static void handler(int number) { (void)number, runs++; }

static void nap(long milliseconds) { nanosleep(&(struct timespec){0, milliseconds * 1000000}, NULL); }

static uint64_t sections(void) {
    struct sigblock_counts counts;
    sigblock_counts(&counts);
    return counts.sections;
}

static int at_once(const char *name) {
    seen_in_constructor = -1;
    if (!dlopen(name, RTLD_NOW)) fprintf(stderr, "%s\n", dlerror());
    return seen_in_constructor;
}

// sigaction as glibc's symbol table has it.
static int inside_by_version(void) {
    int (*set)(int, const struct sigaction *, struct sigaction *) = NULL;
    void *library = dlopen("libc.so.6", RTLD_NOW);
    *(void **)&set = dlvsym(library, "sigaction", "GLIBC_2.2.5");
    struct sigaction action = {.sa_handler = handler};
    if (set) set(SIGUSR2, &action, NULL);
    int before = runs;
    sigblock_enter();
    raise(SIGUSR2);
    int inside = runs - before;
    sigblock_leave();
    return set && runs - before == 1 ? inside : -1;
}

static volatile int is_in_callback, may_return;
static int keep(struct dl_phdr_info *information, size_t size, void *data) {
    (void)information, (void)size, (void)data;
    is_in_callback = 1;
    while (!may_return) nap(1);
    return 1;
}
static int skip(struct dl_phdr_info *information, size_t size, void *data) {
    (void)information, (void)size, (void)data;
    return 1;
}
static void *iterate(void *callback) {
    dl_iterate_phdr((int (*)(struct dl_phdr_info *, size_t, void *))callback, NULL);
    return NULL;
}

// Whether a thread that waits for another's callback answers a signal.
static int answers(void) {
    pthread_t holder, waiter;
    pthread_create(&holder, NULL, iterate, (void *)keep);
    while (!is_in_callback) nap(1);
    pthread_create(&waiter, NULL, iterate, (void *)skip);
    nap(200);
    int before = runs;
    pthread_kill(waiter, SIGUSR1);
    nap(200);
    int answered = runs - before;
    may_return = 1;
    pthread_join(holder, NULL);
    pthread_join(waiter, NULL);
    return runs - before == 1 ? answered : -1;
}

static jmp_buf back;
static int jump(struct dl_phdr_info *information, size_t size, void *data) {
    (void)information, (void)size, (void)data;
    longjmp(back, 1);
}

// Whether another thread can iterate after a jump out of a callback.
static int goes_on(void) {
    if (!setjmp(back)) dl_iterate_phdr(jump, NULL);
    pthread_t other;
    pthread_create(&other, NULL, iterate, (void *)skip);
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec++;
    return pthread_timedjoin_np(other, NULL, &limit) == 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    sections();
    uint64_t before = sections();
    getppid();
    int bound = (int)(sections() - before);
    int path = at_once(argv[1]), name = at_once(argv[2]);
    int version = inside_by_version(), answered = answers();
    printf("bound=%d constructor_by_path=%d constructor_by_name=%d inside_by_dlvsym=%d answers=%d goes_on=%d\n", bound, path, name,
           version, answered, goes_on());
    fflush(stdout);
    _exit(0);
}
