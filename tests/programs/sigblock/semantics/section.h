// Sections as the programs of these suites use them: the loader's C interface where there is one; elsewhere
// (ld-linux) the same by sigprocmask, which is what a section is defined by. And a record of handlers' runs.
#ifndef SECTION_H
#define SECTION_H
// The sources define _GNU_SOURCE.
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

struct sigblock_counts {
    uint64_t sections, held;
};
#ifdef __cplusplus
extern "C" {
#endif
extern void sigblock_enter(void) __attribute__((weak));
extern void sigblock_leave(void) __attribute__((weak));
extern unsigned *sigblock_word(void) __attribute__((weak));
extern const char *sigblock_backend(void) __attribute__((weak));
extern int sigblock_mask(const sigset_t *hold, sigset_t *old) __attribute__((weak));
extern void sigblock_counts(struct sigblock_counts *) __attribute__((weak));
#ifdef __cplusplus
}
#endif

// What a section holds unless told otherwise: everything but KILL, STOP, ABRT, the six faults, 32 and 33. glibc's
// sigfillset leaves the last two out.
__attribute__((unused)) static sigset_t default_hold(void) {
    static const int never[] = {SIGKILL, SIGSTOP, SIGABRT, SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
    sigset_t hold;
    sigfillset(&hold);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) sigdelset(&hold, never[i]);
    return hold;
}

static __thread unsigned stand_in_depth;
static __thread sigset_t stand_in_saved;

// The back end's name; "ld-linux" where there is none.
__attribute__((unused)) static const char *backend(void) { return sigblock_backend ? sigblock_backend() : "ld-linux"; }

__attribute__((unused)) static void enter(void) {
    if (sigblock_enter) {
        sigblock_enter();
        return;
    }
    sigset_t hold = default_hold(), old;
    if (stand_in_depth == 0) {
        pthread_sigmask(SIG_BLOCK, &hold, &old);
        stand_in_saved = old;
    }
    stand_in_depth++;
}

__attribute__((unused)) static void leave(void) {
    if (sigblock_leave) {
        sigblock_leave();
        return;
    }
    stand_in_depth--;
    if (stand_in_depth == 0) pthread_sigmask(SIG_SETMASK, &stand_in_saved, 0);
}

// How many sections of the calling thread are open.
__attribute__((unused)) static unsigned depth(void) {
    return sigblock_word ? *(volatile unsigned *)sigblock_word() >> 4 : stand_in_depth;
}

// What runs of `record` saw.
struct seen {
    int number, code, value, stage;
    pid_t sender;
};
static struct seen seen[256];
static volatile sig_atomic_t runs, stage;

__attribute__((unused)) static void record(int number, siginfo_t *information, void *context) {
    (void)context;
    struct seen one = {number, information->si_code, information->si_value.sival_int, stage, information->si_pid};
    if (runs < 256) seen[runs] = one;
    runs++;
}

__attribute__((unused)) static void count_run(int number) {
    (void)number;
    runs++;
}

// Sets `record` with these flags and an empty mask.
__attribute__((unused)) static void on(int number, int flags) {
    struct sigaction action;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO | flags;
    action.sa_sigaction = record;
    sigaction(number, &action, 0);
}

__attribute__((unused)) static int queue(int number, int value) {
    union sigval with;
    with.sival_int = value;
    return sigqueue(getpid(), number, with);
}

struct called_back {
    void (*work)(void *);
    void *argument;
};

static int call_back(struct dl_phdr_info *object, size_t size, void *data) {
    struct called_back *call = (struct called_back *)data;
    (void)object;
    (void)size;
    call->work(call->argument);
    return 1;
}

// Runs `work` once, in a callback of dl_iterate_phdr: the loader has a section open there.
__attribute__((unused)) static void in_callback(void (*work)(void *), void *argument) {
    struct called_back call = {work, argument};
    dl_iterate_phdr(call_back, &call);
}

// A thread that exists and does nothing, so that the process is a threaded one; it takes no signal.
__attribute__((unused)) static void *do_nothing(void *argument) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    for (;;) pause();
    return argument;
}
#endif
