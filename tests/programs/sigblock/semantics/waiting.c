// Calls that sleep with another mask, made from a callback of dl_iterate_phdr: they end the loader's section, so that
// what they wait for can come, and the section is open again behind them. Each as a program uses them: with the
// signal blocked before, and with a signal that comes while the call sleeps. ld-linux has no section there; its
// results are the same.
#define _GNU_SOURCE
#include "asleep.h"
#include <sys/epoll.h>
#include <sys/select.h>

static const struct timespec LONG = {15, 0}, SHORT = {0, 20000000};
static sigset_t none;
static int epoll;

static int by_sigsuspend(const struct timespec *limit) {
    (void)limit;
    return sigsuspend(&none);
}
static int by_pause(const struct timespec *limit) {
    (void)limit;
    return pause();
}
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static int by_sigpause(const struct timespec *limit) {
    (void)limit;
    return sigpause(SIGUSR1);
}
static int by_ppoll(const struct timespec *limit) { return ppoll(0, 0, limit, &none); }
static int by_pselect(const struct timespec *limit) { return pselect(0, 0, 0, 0, limit, &none); }
static int by_epoll_pwait(const struct timespec *limit) {
    struct epoll_event event;
    return epoll_pwait(epoll, &event, 1, (int)(limit->tv_sec * 1000 + limit->tv_nsec / 1000000), &none);
}
static int by_epoll_pwait2(const struct timespec *limit) {
    struct epoll_event event;
    return epoll_pwait2(epoll, &event, 1, limit, &none);
}

static int (*wait_by)(const struct timespec *);
static int blocked_before;
static pid_t sender;

static void tell_mask(void) {
    sigset_t now;
    sigprocmask(SIG_BLOCK, 0, &now);
    say(" mask");
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&now, number) == 1) say(" %d", number);
}

static void waits(void *unused) {
    (void)unused;
    if (blocked_before) kill(getpid(), SIGUSR1);
    errno = 0;
    int status = wait_by(&LONG);
    int error = errno;
    say("%d %s, runs %d", status, strerror(error), (int)runs);
}
// The first signal was there before the call, or comes while it sleeps; afterwards signals come as before.
static void wait_in_callback(int (*how)(const struct timespec *), int blocked) {
    sigset_t user1;
    sigemptyset(&none);
    sigemptyset(&user1);
    sigaddset(&user1, SIGUSR1);
    epoll = epoll_create1(0);
    wait_by = how;
    blocked_before = blocked;
    on(SIGUSR1, 0);
    // Without SA_RESTART a call that is interrupted ends; with it these calls end as well.
    if (blocked) sigprocmask(SIG_BLOCK, &user1, 0);
    else {
        pid_t sleeper = getpid();
        sender = fork();
        if (sender == 0) {
            // Any of the calls: all sleep in the kernel, none of them in what came before.
            static const long calls[] = {SYS_rt_sigsuspend, SYS_pause, SYS_ppoll, SYS_pselect6, SYS_epoll_pwait, SYS_epoll_pwait2};
            static int (*const hows[])(const struct timespec *) = {by_sigsuspend, by_pause, by_ppoll, by_pselect, by_epoll_pwait, by_epoll_pwait2};
            for (size_t i = 0; i < 6; i++)
                if (how == hows[i]) until_asleep(sleeper, calls[i], -1);
            if (how == by_sigpause) until_asleep(sleeper, SYS_rt_sigsuspend, -1);
            kill(sleeper, SIGUSR1);
            _exit(0);
        }
    }
    in_callback(waits, 0);
    if (!blocked) await(sender);
    tell_mask();
    say(" depth %u", depth());
    sigprocmask(SIG_SETMASK, &none, 0);
    kill(getpid(), SIGUSR1);
    say(", later %d", (int)runs);
}
#define TWO(name) \
    static void blocked_##name(void) { wait_in_callback(by_##name, 1); } \
    static void asleep_##name(void) { wait_in_callback(by_##name, 0); }
TWO(sigsuspend)
TWO(ppoll)
TWO(pselect)
TWO(epoll_pwait)
TWO(epoll_pwait2)
TWO(sigpause)
static void asleep_pause(void) { wait_in_callback(by_pause, 0); }

// A signal sent in the callback, not blocked: held in user mode until the call, which then waits for no other.
static void sends_then_waits(void *unused) {
    (void)unused;
    kill(getpid(), SIGUSR1);
    int status = wait_by(&SHORT);
    say("%d, runs %d", status, (int)runs);
}
static void held_then(int (*how)(const struct timespec *)) {
    sigemptyset(&none);
    epoll = epoll_create1(0);
    wait_by = how;
    on(SIGUSR1, 0);
    in_callback(sends_then_waits, 0);
    say(" depth %u", depth());
}
static void held_then_ppoll(void) { held_then(by_ppoll); }
static void held_then_pselect(void) { held_then(by_pselect); }
static void held_then_epoll_pwait(void) { held_then(by_epoll_pwait); }

// The section is open again behind the call, at the latest when the callback has returned; the visit goes on where it
// was.
static int objects, wrong;
static int counts_objects(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size;
    (void)unused;
    objects++;
    wrong += !object->dlpi_phnum || !object->dlpi_phdr;
    ppoll(0, 0, &(struct timespec){0, 1000}, &none);
    return 0;
}
static int only_counts(struct dl_phdr_info *object, size_t size, void *number) {
    (void)object;
    (void)size;
    ++*(int *)number;
    return 0;
}
static int held_again(struct dl_phdr_info *object, size_t size, void *number) {
    (void)object;
    (void)size;
    int *calls = number;
    if (++*calls == 1) {
        ppoll(0, 0, &(struct timespec){0, 1000}, &none);
        return 0;
    }
    int before = runs;
    kill(getpid(), SIGUSR1);
    say("in the next callback %d depth %u", runs - before, depth());
    return 1;
}
static void goes_on(void) {
    int all = 0, calls = 0;
    sigemptyset(&none);
    dl_iterate_phdr(only_counts, &all);
    int status = dl_iterate_phdr(counts_objects, 0);
    say("status %d, all objects %d, wrong %d, ", status, objects == all, wrong);
    on(SIGUSR1, 0);
    dl_iterate_phdr(held_again, &calls);
    say(", after %d depth %u", (int)runs, depth());
}

#define BLOCKED "-1 Interrupted system call, runs 1 mask 10 depth 0, later 2"
#define SLEEPING "-1 Interrupted system call, runs 1 mask depth 0, later 2"
static const struct test_case cases[] = {
    {"sigsuspend, blocked before", blocked_sigsuspend, BLOCKED, 0, 0},
    {"sigsuspend, asleep", asleep_sigsuspend, SLEEPING, 0, 0},
    {"ppoll, blocked before", blocked_ppoll, BLOCKED, 0, 0},
    {"ppoll, asleep", asleep_ppoll, SLEEPING, 0, 0},
    {"pselect, blocked before", blocked_pselect, BLOCKED, 0, 0},
    {"pselect, asleep", asleep_pselect, SLEEPING, 0, 0},
    {"epoll_pwait, blocked before", blocked_epoll_pwait, BLOCKED, 0, 0},
    {"epoll_pwait, asleep", asleep_epoll_pwait, SLEEPING, 0, 0},
    {"epoll_pwait2, blocked before", blocked_epoll_pwait2, BLOCKED, 0, 0},
    {"epoll_pwait2, asleep", asleep_epoll_pwait2, SLEEPING, 0, 0},
    {"sigpause, blocked before", blocked_sigpause, BLOCKED, 0, 0},
    {"sigpause, asleep", asleep_sigpause, SLEEPING, 0, 0},
    {"pause, asleep", asleep_pause, SLEEPING, 0, 0},
    {"held before ppoll", held_then_ppoll, "0, runs 1 depth 0", 0, 0},
    {"held before pselect", held_then_pselect, "0, runs 1 depth 0", 0, 0},
    {"held before epoll_pwait", held_then_epoll_pwait, "0, runs 1 depth 0", 0, 0},
    {"the visit goes on, in a section", goes_on,
     "status 0, all objects 1, wrong 0, in the next callback 1 depth 0, after 1 depth 0",
     "status 0, all objects 1, wrong 0, in the next callback 0 depth 1, after 1 depth 0",
     "status 0, all objects 1, wrong 0, in the next callback 0 depth 1, after 1 depth 0"},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
