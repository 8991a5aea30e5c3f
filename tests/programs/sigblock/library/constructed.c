// A plug-in of weak.c: its constructor sends its thread a signal, and notes whether the handler has run by then.
#include <signal.h>

extern volatile int runs;
extern volatile int seen_in_constructor;

__attribute__((constructor)) static void construct(void) {
    int before = runs;
    raise(SIGUSR1);
    seen_in_constructor = runs - before;
}
