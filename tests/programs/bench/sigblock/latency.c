// What one signal to the own thread costs, from sending it to having gone on after its handler: outside a section, and sent inside
// one, where the handler runs at the section's end. Under a loader without sections, inside means between two calls of
// pthread_sigmask, which is what a program can do there.
#define _GNU_SOURCE
#include "measure.h"
#include <string.h>
#include <unistd.h>

static volatile long handled;

static void handler(int number) {
    (void)number;
    handled++;
}

static void fail(const char *what, long expected) {
    fprintf(stderr, "%s: %ld handlers ran, expected %ld\n", what, (long)handled, expected);
    exit(1);
}

static sigset_t outer;

static void enter(void) {
    if (sigblock_enter) {
        sigblock_enter();
        return;
    }
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &outer);
}

static void leave(void) {
    if (sigblock_leave)
        sigblock_leave();
    else
        pthread_sigmask(SIG_SETMASK, &outer, NULL);
}

int main(int argument_count, char **arguments) {
    long count = count_argument(argument_count, arguments);
    print_backend();
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    if (sigaction(SIGUSR1, &action, NULL)) return 1;
    pid_t process = getpid(), thread = gettid();
    tgkill(process, thread, SIGUSR1);
    enter();
    tgkill(process, thread, SIGUSR1);
    int held = handled == 1;
    leave();
    // `off` holds nothing, and nothing else lets a handler in.
    int holds = !sigblock_backend || strcmp(sigblock_backend(), "off") != 0;
    if (handled != 2 || held != holds) fail("one signal inside a section", 1);

    handled = 0;
    struct phase start = phase_start();
    for (long i = 0; i < count; i++) tgkill(process, thread, SIGUSR1);
    phase_end(start, "outside", count);
    if (handled != count) fail("outside", count);

    handled = 0;
    start = phase_start();
    for (long i = 0; i < count; i++) {
        enter();
        tgkill(process, thread, SIGUSR1);
        leave();
    }
    phase_end(start, "inside", count);
    if (handled != count) fail("inside", count);
    return 0;
}
