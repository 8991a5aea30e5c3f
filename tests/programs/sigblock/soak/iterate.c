// iterate SECONDS [HERTZ]: a timer's handler calls dl_iterate_phdr while the main line does nothing else. Under ld-linux (glibc 2.36)
// it hangs at once: iterate.hang.txt has the backtrace. Prints counts; needs nothing of the loader but dl_iterate_phdr.
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HERTZ = 20000 };

static volatile unsigned long runs, wrong;
static int objects;

static int count(struct dl_phdr_info *info, size_t size, void *counter) {
    (void)size;
    if (!info->dlpi_phnum || !info->dlpi_phdr) return 1;
    ++*(int *)counter;
    return 0;
}

static int iterate(void) {
    int counter = 0;
    return dl_iterate_phdr(count, &counter) ? -1 : counter;
}

static void handler(int number) {
    (void)number;
    if (iterate() != objects) wrong++;
    runs++;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    long nanoseconds = 1000000000L / (argc > 2 ? atoi(argv[2]) : HERTZ);
    objects = iterate();
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2};
    struct itimerspec period = {{0, nanoseconds}, {0, nanoseconds}};
    timer_t timer;
    if (sigaction(SIGRTMIN + 2, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
        timer_settime(timer, 0, &period, NULL))
        return perror("timer"), 2;
    unsigned long iterations = 0;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int i = 0; i < 1000; i++) wrong += iterate() != objects;
        iterations += 1000;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
    memset(&period, 0, sizeof period);
    timer_settime(timer, 0, &period, NULL);
    printf("objects=%d iterations=%lu runs=%lu wrong=%lu\n", objects, iterations, runs, wrong);
    return 0;
}
