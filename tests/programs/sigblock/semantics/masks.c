// The program's signal mask and a section. What the program reads and changes inside of a section is its own mask,
// whatever the section does with the kernel's. Under ld-linux the section is made by the same mask, so that there
// what a program changes inside is undone: those expectations are written down.
#define _GNU_SOURCE
#include "cases.h"
#include <sys/syscall.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static sigset_t only(int number) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    return one;
}
static void tell_set(const sigset_t *mask) {
    say(" {");
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(mask, number) == 1) say(" %d", number);
    say(" }");
}
static void tell_mask(void) {
    sigset_t now;
    sigprocmask(SIG_BLOCK, 0, &now);
    tell_set(&now);
}

// Blocking inside lasts, whether a signal waits or not; what it reads is the program's.
static void blocks(int held, int (*change)(int, const sigset_t *, sigset_t *)) {
    sigset_t user2 = only(SIGUSR2), old;
    on(SIGUSR1, 0);
    on(SIGUSR2, 0);
    enter();
    if (held) kill(getpid(), SIGUSR1);
    say("status %d", change(SIG_BLOCK, &user2, &old));
    tell_set(&old);
    tell_mask();
    kill(getpid(), SIGUSR2);
    leave();
    tell_mask();
    say(" runs %d", (int)runs);
    change(SIG_SETMASK, &old, &user2);
    tell_set(&user2);
    say(" runs %d", (int)runs);
}
static void block_plain(void) { blocks(0, sigprocmask); }
static void block_held(void) { blocks(1, sigprocmask); }
static void block_thread_plain(void) { blocks(0, pthread_sigmask); }
static void block_thread_held(void) { blocks(1, pthread_sigmask); }

// The held one itself is blocked inside: it waits beyond the end, with what its handler is told.
static void blocks_held_one(void) {
    sigset_t user1 = only(SIGUSR1), pending;
    on(SIGUSR1, 0);
    enter();
    queue(SIGUSR1, 41);
    sigprocmask(SIG_BLOCK, &user1, 0);
    leave();
    sigpending(&pending);
    say("runs %d pending %d", (int)runs, sigismember(&pending, SIGUSR1));
    sigprocmask(SIG_UNBLOCK, &user1, 0);
    say(", unblocked: runs %d code %d value %d", (int)runs, seen[0].code, seen[0].value);
}
static void blocks_many(void) {
    sigset_t number = only(SIGRTMIN + 1);
    on(SIGRTMIN + 1, 0);
    enter();
    for (int i = 0; i < 5; i++) queue(SIGRTMIN + 1, i);
    sigprocmask(SIG_BLOCK, &number, 0);
    leave();
    for (int i = 5; i < 8; i++) queue(SIGRTMIN + 1, i);
    enter();
    leave();
    say("runs %d,", (int)runs);
    sigprocmask(SIG_UNBLOCK, &number, 0);
    for (int i = 0; i < runs; i++) say(" %d", seen[i].value);
}
// Unblocking inside lets nothing run inside.
static void unblocks(void) {
    sigset_t user1 = only(SIGUSR1);
    on(SIGUSR1, 0);
    on(SIGUSR2, 0);
    sigprocmask(SIG_BLOCK, &user1, 0);
    kill(getpid(), SIGUSR1);
    enter();
    sigprocmask(SIG_UNBLOCK, &user1, 0);
    say("inside %d", (int)runs);
    kill(getpid(), SIGUSR2);
    sigprocmask(SIG_UNBLOCK, &user1, 0);
    say(" %d", (int)runs);
    leave();
    say(", after %d", (int)runs);
    tell_mask();
}
static void everything(void) {
    sigset_t all, none, now;
    sigfillset(&all);
    sigemptyset(&none);
    on(SIGUSR1, 0);
    enter();
    kill(getpid(), SIGUSR1);
    sigprocmask(SIG_SETMASK, &all, 0);
    leave();
    sigprocmask(SIG_SETMASK, &none, &now);
    say("all blocked %d, runs %d", !memcmp(&now, &(sigset_t){{0xfffffffe7ffbfeff}}, 8), (int)runs);
    enter();
    sigprocmask(SIG_SETMASK, &none, 0);
    kill(getpid(), SIGUSR1);
    sigprocmask(SIG_SETMASK, &none, 0);
    say(", inside %d", (int)runs);
    leave();
    say(", after %d", (int)runs);
    errno = 0;
    enter();
    int status = sigprocmask(99, &none, 0);
    leave();
    say(", bad %d %d", status, errno);
    errno = 0;
    enter();
    status = pthread_sigmask(99, &none, 0);
    leave();
    say(" %d %d", status, errno);
}
static void system_v(void) {
    on(SIGUSR1, 0);
    on(SIGUSR2, 0);
    enter();
    kill(getpid(), SIGUSR1);
    say("%d", sighold(SIGUSR2));
    kill(getpid(), SIGUSR2);
    say(" inside %d", (int)runs);
    leave();
    say(" after %d", (int)runs);
    tell_mask();
    enter();
    say(" %d", sigrelse(SIGUSR2));
    say(" inside %d", (int)runs);
    leave();
    say(" after %d", (int)runs);
    tell_mask();
}
static void berkeley(void) {
    on(SIGUSR1, 0);
    enter();
    kill(getpid(), SIGUSR1);
    say("%x", sigblock(1 << (SIGUSR2 - 1)));
    say(" %x", siggetmask());
    leave();
    say(" runs %d, %x", (int)runs, sigsetmask(0));
    tell_mask();
}
static void set_inside(void) {
    on(SIGUSR1, 0);
    signal(SIGUSR2, count_run);
    enter();
    kill(getpid(), SIGUSR1);
    sigset(SIGUSR2, SIG_HOLD);
    leave();
    tell_mask();
    say(" runs %d", (int)runs);
}
// Blocked before the section: a section's end delivers nothing of it.
static void blocked_before(void) {
    sigset_t user1 = only(SIGUSR1), pending;
    on(SIGUSR1, 0);
    on(SIGUSR2, 0);
    sigprocmask(SIG_BLOCK, &user1, 0);
    enter();
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    leave();
    sigpending(&pending);
    say("runs %d of %d, pending %d", (int)runs, seen[0].number, sigismember(&pending, SIGUSR1));
    tell_mask();
    sigprocmask(SIG_UNBLOCK, &user1, 0);
    say(" then %d", (int)runs);
}
// The kernel's mask after a section, and while nothing waits in user mode: as the program set it.
static void kernels_mask(void) {
    unsigned long mask[3];
    on(SIGUSR1, 0);
    enter();
    leave();
    syscall(SYS_rt_sigprocmask, 0, 0, &mask[0], 8);
    enter();
    kill(getpid(), SIGUSR1);
    enter();
    leave();
    leave();
    syscall(SYS_rt_sigprocmask, 0, 0, &mask[1], 8);
    sigset_t user2 = only(SIGUSR2);
    sigprocmask(SIG_BLOCK, &user2, 0);
    enter();
    kill(getpid(), SIGUSR1);
    leave();
    syscall(SYS_rt_sigprocmask, 0, 0, &mask[2], 8);
    say("%lx %lx %lx", mask[0], mask[1], mask[2]);
}
static void waited_for(void) {
    sigset_t user1 = only(SIGUSR1);
    siginfo_t information;
    int number = 0;
    on(SIGUSR1, 0);
    enter();
    queue(SIGUSR1, 5);
    int status = sigwait(&user1, &number);
    leave();
    say("sigwait %d %d, ", status, number);
    enter();
    queue(SIGUSR1, 6);
    number = sigwaitinfo(&user1, &information);
    leave();
    say("sigwaitinfo %d code %d value %d, runs %d", number, information.si_code, information.si_value.sival_int, (int)runs);
}
static void takes_and_runs(int number, siginfo_t *information, void *context) {
    sigset_t user2 = only(SIGUSR2);
    record(number, information, context);
    // A mask changed in a handler lasts to its end.
    if (number == SIGUSR1) sigprocmask(SIG_BLOCK, &user2, 0);
    if (number == SIGUSR1) raise(SIGUSR2);
    say("%d runs %d ", number, (int)runs);
}
static void changed_in_handler(void) {
    struct sigaction action = {.sa_sigaction = takes_and_runs, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, 0);
    sigaction(SIGUSR2, &action, 0);
    enter();
    kill(getpid(), SIGUSR1);
    leave();
    say("runs %d", (int)runs);
    tell_mask();
}

#define BLOCKED "status 0 { } { 12 } { 12 } runs "
static const struct test_case cases[] = {
    {"blocking inside lasts", block_plain, "=", BLOCKED "0 { 12 } runs 1", BLOCKED "0 { 12 } runs 1"},
    {"blocking inside lasts, one held", block_held, "=", BLOCKED "1 { 12 } runs 2", BLOCKED "1 { 12 } runs 2"},
    {"blocking inside lasts, pthread_sigmask", block_thread_plain,
     "=", BLOCKED "0 { 12 } runs 1", BLOCKED "0 { 12 } runs 1"},
    {"blocking inside lasts, pthread_sigmask, one held", block_thread_held,
     "=", BLOCKED "1 { 12 } runs 2", BLOCKED "1 { 12 } runs 2"},
    {"the held one blocked inside waits beyond the end", blocks_held_one,
     "=",
     "runs 0 pending 1, unblocked: runs 1 code -1 value 41",
     "runs 0 pending 1, unblocked: runs 1 code -1 value 41"},
    {"five held ones blocked inside keep their order", blocks_many,
     "=", "runs 0, 0 1 2 3 4 5 6 7", "runs 0, 0 1 2 3 4 5 6 7"},
    {"unblocking inside lets nothing run inside", unblocks, "=", "inside 0 0, after 2 { }", "inside 0 0, after 2 { }"},
    {"SIG_SETMASK inside", everything,
     "=",
     "all blocked 1, runs 1, inside 1, after 2, bad -1 22 22 0",
     "all blocked 1, runs 1, inside 1, after 2, bad -1 22 22 0"},
    {"sighold and sigrelse inside", system_v,
     "=", "0 inside 0 after 1 { 12 } 0 inside 1 after 2 { }", "0 inside 0 after 1 { 12 } 0 inside 1 after 2 { }"},
    {"sigblock, siggetmask, sigsetmask of BSD", berkeley, "=", "0 800 runs 1, 800 { }", "0 800 runs 1, 800 { }"},
    {"sigset(SIG_HOLD) inside", set_inside, "=", " { 12 } runs 1", " { 12 } runs 1"},
    {"blocked before the section", blocked_before, "runs 1 of 12, pending 1 { 10 } then 2", 0, 0},
    {"the kernel's mask after a section", kernels_mask, "0 0 800", 0, 0},
    {"sigwait and sigwaitinfo of held ones", waited_for, "sigwait 0 10, sigwaitinfo 10 code -1 value 6, runs 0", 0, 0},
    {"a mask changed in a held handler", changed_in_handler, "10 runs 1 12 runs 2 runs 2 { }", 0, 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
