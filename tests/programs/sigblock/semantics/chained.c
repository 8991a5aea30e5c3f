// Built with a sanitizer, whose runtime stands between the program and the C library: a handler of the program's is
// held, chained to one that was there before, and a fault is reported as ever. With the argument `fault` it ends in
// one.
#define _GNU_SOURCE
#include "section.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct sigaction earlier;
static void first(int number, siginfo_t *information, void *context) {
    (void)context;
    (void)number;
    runs++;
    seen[0].value = information->si_value.sival_int;
}
static void chained(int number, siginfo_t *information, void *context) {
    runs += 10;
    earlier.sa_sigaction(number, information, context);
}
int main(int argc, char **argv) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = first;
    sigaction(SIGUSR1, &action, 0);
    action.sa_sigaction = chained;
    sigaction(SIGUSR1, &action, &earlier);
    printf("earlier %d\n", earlier.sa_sigaction == first);
    enter();
    queue(SIGUSR1, 41);
    int inside = (int)runs;
    leave();
    // A sanitizer may keep a signal until the program makes a call.
    for (int i = 0; i < 1000 && runs == 0; i++) usleep(1000);
    printf("inside %d after %d value %d\n", inside, (int)runs, seen[0].value);
    signal(SIGINT, count_run);
    raise(SIGINT);
    for (int i = 0; i < 1000 && runs < 12; i++) usleep(1000);
    printf("plain %d depth %u\n", (int)runs, depth());
    fflush(stdout);
    if (argc > 1 && !strcmp(argv[1], "fault")) *(volatile char *)(long)(argc + 14) = 1;
    return 0;
}
