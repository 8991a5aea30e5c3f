// A library whose constructor sets a handler and opens a section, before libsigblock's own constructor has run if that is
// preloaded. Prints what came of it.
#include <signal.h>
#include <stdio.h>

__attribute__((weak)) void sigblock_enter(void);
__attribute__((weak)) void sigblock_leave(void);

static volatile int runs;
static void handler(int number) { (void)number, runs++; }

__attribute__((constructor)) static void construct(void) {
    if (!sigblock_enter) return;
    struct sigaction action = {.sa_handler = handler}, old;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR1, NULL, &old);
    sigblock_enter();
    raise(SIGUSR1);
    int inside = runs;
    sigblock_leave();
    printf("early: inside=%d after=%d read_back=%d\n", inside, runs, old.sa_handler == handler);
}
