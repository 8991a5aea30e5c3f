// A section made by single instructions on the word, as an inlined header would: it holds a signal, says so by PEND, and its end
// lets the signal go.
#include "storm.h"

static volatile int runs;
static volatile unsigned seen;

static void handler(int number) {
    (void)number;
    seen = *sigblock_word();
    runs++;
}

int check_raised_word(void) {
    unsigned *word = sigblock_word();
    struct sigaction action = {.sa_handler = handler}, old;
    if (*word || sigaction(SIGUSR1, &action, &old)) return 1;
    pid_t self = (pid_t)syscall(SYS_gettid);
    raise_word(word);
    raise_word(word);
    if (*(volatile unsigned *)word != 2 * STEP) return 2;
    syscall(SYS_tgkill, getpid(), self, SIGUSR1);
    if (runs || *(volatile unsigned *)word != (2 * STEP | PEND)) return 3;
    lower_word(word);
    if (runs || *(volatile unsigned *)word != (STEP | PEND)) return 4;
    end_raised(word);
    if (runs != 1 || seen & COUNT || *(volatile unsigned *)word) return 5;
    syscall(SYS_tgkill, getpid(), self, SIGUSR1);
    if (runs != 2) return 6;
    return sigaction(SIGUSR1, &old, NULL) ? 7 : 0;
}
