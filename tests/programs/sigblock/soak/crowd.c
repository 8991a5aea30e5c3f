// crowd: every real-time number waits with three signals, sent to this thread with 1, 2, 3, and all are let in at once inside a
// section: the kernel stacks a frame of each number before the first handler runs. Prints counts as KEY=VALUE.
#include "api.h"
#include <pthread.h>

enum { EACH = 3 };
static volatile int last[65], runs, inside, disordered;
static volatile int depth;

static void handler(int number, siginfo_t *info, void *context) {
    (void)context;
    runs++;
    inside += depth != 0;
    if (info->si_value.sival_int != last[number] + 1) disordered++;
    last[number] = info->si_value.sival_int;
}

int main(void) {
    need_sigblock();
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigset_t set, before;
    sigemptyset(&set);
    int numbers = 0, held = 0;
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++, numbers++) {
        if (sigaction(number, &action, NULL)) return perror("sigaction"), 2;
        sigaddset(&set, number);
    }
    sigprocmask(SIG_BLOCK, &set, &before);
    for (int i = 1; i <= EACH; i++)
        for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
            if (pthread_sigqueue(pthread_self(), number, (union sigval){.sival_int = i})) return perror("queue"), 2;
    sigblock_enter();
    depth = 1;
    sigprocmask(SIG_SETMASK, &before, NULL);
    held = runs == 0;
    depth = 0;
    sigblock_leave();
    printf("backend=%s numbers=%d held=%d runs=%d lost=%d inside=%d disordered=%d\n", sigblock_backend(), numbers, held, runs,
           numbers * EACH - runs, inside, disordered);
    return 0;
}
