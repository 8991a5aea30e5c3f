// Signals that end a process, or would: abort, faults and exits inside of sections and callbacks. SIGABRT and the
// faults are never held.
#define _GNU_SOURCE
#include "cases.h"
#include <setjmp.h>
#include <sys/mman.h>

static void told(int number) { say("handler of %d; ", number); }
static void aborts(void *unused) {
    (void)unused;
    abort();
}
static void abort_in_callback(void) {
    signal(SIGABRT, told);
    in_callback(aborts, 0);
}
static void abort_in_callback_default(void) { in_callback(aborts, 0); }
static void abort_in_section(void) {
    signal(SIGABRT, told);
    enter();
    abort();
}
static void abort_of_holder(void) {
    signal(SIGABRT, told);
    on(SIGUSR1, 0);
    enter();
    kill(getpid(), SIGUSR1);
    abort();
}
static sigjmp_buf target;
static void jumps(int number) {
    (void)number;
    siglongjmp(target, 1);
}
static void abort_left(void) {
    signal(SIGABRT, jumps);
    on(SIGUSR1, 0);
    if (sigsetjmp(target, 1) == 0) in_callback(aborts, 0);
    kill(getpid(), SIGUSR1);
    say("depth %u, runs %d", depth(), (int)runs);
}
static void abort_ignored(void) {
    signal(SIGABRT, SIG_IGN);
    in_callback(aborts, 0);
}
static void raises_abort(void *unused) {
    (void)unused;
    raise(SIGABRT);
    say("returned, ");
}
static void raise_abort(void) {
    signal(SIGABRT, told);
    in_callback(raises_abort, 0);
    say("end");
}

// Each fault, made by the processor, with a handler that leaves by a jump; inside of a section as outside.
static volatile int stage_seen;
static void fault_handler(int number, siginfo_t *information, void *context) {
    sigset_t now;
    record(number, information, context);
    sigprocmask(SIG_BLOCK, 0, &now);
    stage_seen = stage;
    say("%d code %d at stage %d blocked %d; ", number, information->si_code, (int)stage, sigismember(&now, number));
    siglongjmp(target, 1);
}
static void *file_past_its_end(void) {
    int file = memfd_create("short", MFD_CLOEXEC);
    void *page = mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0);
    if (file < 0 || page == MAP_FAILED) give_up("memfd_create");
    return page;
}
static void fault_by(int number, void *page) {
    static volatile int zero;
    switch (number) {
    case SIGSEGV: *(volatile char *)16 = 1; break;
    case SIGBUS: say("%d", *(volatile char *)page); break;
    case SIGILL: __asm__ volatile("ud2"); break;
    case SIGFPE: stage = number / zero; break;
    case SIGTRAP: __asm__ volatile("int3"); break;
    }
}
static void faults(void) {
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    void *volatile page = file_past_its_end();
    for (volatile size_t i = 0; i < 5; i++) {
        struct sigaction action = {.sa_sigaction = fault_handler, .sa_flags = SA_SIGINFO};
        sigaction(numbers[i], &action, 0);
        enter();
        stage = 1;
        if (sigsetjmp(target, 1) == 0) fault_by(numbers[i], page);
        stage = 2;
        leave();
    }
    say("depth %u", depth());
}
// While one waits, all but the faults are blocked: they still come.
static void faults_while_held(void) {
    on(SIGUSR1, 0);
    struct sigaction action = {.sa_sigaction = fault_handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);
    enter();
    kill(getpid(), SIGUSR1);
    stage = 1;
    if (sigsetjmp(target, 1) == 0) fault_by(SIGSEGV, 0);
    say("runs %d, ", (int)runs);
    stage = 2;
    leave();
    say("runs %d at stage %d", (int)runs, seen[1].stage);
}
static void fault_default(void *unused) {
    (void)unused;
    fault_by(SIGSEGV, 0);
}
static void fault_kills(void) {
    on(SIGUSR1, 0);
    enter();
    kill(getpid(), SIGUSR1);
    fault_default(0);
}
static void fault_kills_in_callback(void) { in_callback(fault_default, 0); }
// Sent by somebody, a fault's number is not held either: it never is.
static void sent_fault(void) {
    on(SIGSEGV, 0);
    on(SIGUSR1, 0);
    enter();
    stage = 1;
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGSEGV);
    say("inside %d of %d code %d, ", (int)runs, seen[0].number, seen[0].code);
    stage = 2;
    leave();
    say("after %d", (int)runs);
}
static void at_exit(void) { say("at exit: runs %d; ", (int)runs); }
static void exits(void *unused) {
    (void)unused;
    kill(getpid(), SIGUSR1);
    exit(7);
}
static void exit_in_callback(void) {
    on(SIGUSR1, 0);
    atexit(at_exit);
    in_callback(exits, 0);
}
static void exits_quickly(void *unused) {
    (void)unused;
    kill(getpid(), SIGUSR1);
    _exit(8 + (int)(runs > 1));
}
static void quick_exit_in_callback(void) {
    on(SIGUSR1, 0);
    in_callback(exits_quickly, 0);
}
// Terminated at the section's end by what waited there.
static void blocked_default(void) {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, 0);
    enter();
    kill(getpid(), SIGTERM);
    leave();
    say("alive, ");
    sigprocmask(SIG_UNBLOCK, &term, 0);
}

static const struct test_case cases[] = {
    {"abort in a callback: its handler runs", abort_in_callback, "handler of 6;  signal 6", 0, 0},
    {"abort in a callback", abort_in_callback_default, " signal 6", 0, 0},
    {"abort in a section", abort_in_section, "handler of 6;  signal 6", 0, 0},
    {"abort while one is held", abort_of_holder, "handler of 6;  signal 6", 0, 0},
    {"abort left by siglongjmp", abort_left, "depth 0, runs 1", 0, 0},
    {"abort, SIGABRT ignored", abort_ignored, " signal 6", 0, 0},
    {"SIGABRT raised in a callback", raise_abort, "handler of 6; returned, end", 0, 0},
    {"faults inside", faults,
     "11 code 1 at stage 1 blocked 1; 7 code 2 at stage 1 blocked 1; 4 code 2 at stage 1 blocked 1; 8 code 1 at stage 1 blocked 1; 5 code 128 at stage 1 blocked 1; depth 0",
     0, 0},
    {"a fault while one is held", faults_while_held, "11 code 1 at stage 1 blocked 1; runs 1, runs 2 at stage 2", 0, 0},
    {"a fault without handler while one is held", fault_kills, " signal 11", 0, 0},
    {"a fault without handler in a callback", fault_kills_in_callback, " signal 11", 0, 0},
    {"SIGSEGV that was sent", sent_fault, "inside 1 of 11 code 0, after 2", 0, 0},
    {"exit in a callback", exit_in_callback, "at exit: runs 1;  exit 7", 0, 0},
    {"_exit in a callback", quick_exit_in_callback, " exit 8", 0, 0},
    {"a default action that the program blocks", blocked_default, "alive,  signal 15", 0, 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
