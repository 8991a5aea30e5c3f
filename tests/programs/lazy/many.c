// many threads|signal: the first calls of 128 functions, by eight threads at the same moment, or inside a signal handler
// that runs on a small alternate stack while the program itself is in the middle of its own first calls.
#include "many.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/time.h>

#define WRONG(n) if (many_##n(1) != 0x##n + 1) return 1;
static int call_all(void) { FUNCTIONS(WRONG) return 0; }

static pthread_barrier_t barrier;
static void *thread(void *unused) {
    (void)unused;
    pthread_barrier_wait(&barrier);
    return call_all() ? (void *)1 : 0;
}

static int threads(void) {
    enum { COUNT = 8 };
    pthread_t ids[COUNT];
    int bad = 0;
    pthread_barrier_init(&barrier, 0, COUNT);
    for (int i = 0; i < COUNT; i++)
        if (pthread_create(&ids[i], 0, thread, 0)) return 2;
    for (int i = 0; i < COUNT; i++) {
        void *result;
        pthread_join(ids[i], &result);
        bad |= result != 0;
    }
    return bad;
}

static volatile sig_atomic_t handled, handler_bad;
static void handler(int number) {
    (void)number;
    handler_bad |= call_all();
    handled = 1;
}

static int in_handler(void) {
    unsigned long size = getauxval(AT_MINSIGSTKSZ);
    if (size < 2048) size = 2048;
    size += 8192;
    stack_t stack = {.ss_sp = malloc(size), .ss_size = size};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    if (!stack.ss_sp || sigaltstack(&stack, 0) || sigaction(SIGALRM, &action, 0)) return 2;
    struct itimerval soon = {.it_value = {.tv_usec = 1}};
    if (setitimer(ITIMER_REAL, &soon, 0)) return 2;
    int bad = call_all();
    while (!handled) bad |= call_all();
    return bad | handler_bad;
}

int main(int argc, char **argv) {
    int bad = argc == 2 && !strcmp(argv[1], "threads") ? threads() : argc == 2 && !strcmp(argv[1], "signal") ? in_handler() : 2;
    printf("%s\n", bad ? "wrong" : "right");
    return bad;
}
