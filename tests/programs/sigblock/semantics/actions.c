// What a program sees of its actions: `sigaction(n, 0, &old)` after every way of setting one, and what the kernel
// shows of it. All of it is compared with ld-linux; that a handler set so is held shows that the way was seen.
#define _GNU_SOURCE
#include "cases.h"
#include <dlfcn.h>
#include <sched.h>

extern int __sigaction(int, const struct sigaction *, struct sigaction *);
extern sighandler_t bsd_signal(int, sighandler_t);
extern sighandler_t sysv_signal(int, sighandler_t);
extern sighandler_t __sysv_signal(int, sighandler_t);
extern sighandler_t ssignal(int, sighandler_t);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const char *name_of(void (*handler)(int)) {
    static char text[32];
    if (handler == SIG_DFL) return "SIG_DFL";
    if (handler == SIG_IGN) return "SIG_IGN";
    if (handler == SIG_ERR) return "SIG_ERR";
    if (handler == SIG_HOLD) return "SIG_HOLD";
    if (handler == count_run) return "count_run";
    if ((void *)handler == (void *)record) return "record";
    snprintf(text, sizeof text, "%#lx", (unsigned long)handler < 4096 ? (unsigned long)handler : 4096);
    return text;
}

// The action as the C library gives it. Of the mask the kernel fills 8 bytes; the others are what lay on glibc's stack.
static void tell(int number) {
    struct sigaction old;
    memset(&old, 0xa5, sizeof old);
    errno = 0;
    int status = sigaction(number, 0, &old);
    say("{%d", status);
    if (status) {
        say(" %s}", strerror(errno));
        return;
    }
    say(" %s %x restorer %d mask %lx}", name_of(old.sa_handler), old.sa_flags, old.sa_restorer != 0, *(unsigned long *)&old.sa_mask);
}

// What the kernel keeps: which signals are caught and which ignored.
static void tell_kernel(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) give_up("/proc/self/status");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "SigIgn", 6) || !strncmp(line, "SigCgt", 6)) say(" %s", line);
    fclose(status);
}

static void each_flag(void) {
    for (int bit = 0; bit < 32; bit++) {
        struct sigaction action = {.sa_sigaction = record, .sa_flags = (int)(1u << bit)};
        sigaddset(&action.sa_mask, SIGHUP);
        if (sigaction(SIGUSR1, &action, 0)) say("refused ");
        tell(SIGUSR1);
    }
}
static void flags_together(void) {
    static const unsigned flags[] = {~0u, 0, 0x7fffffff, SA_SIGINFO | SA_RESTART, SA_NOCLDSTOP | SA_NOCLDWAIT, SA_RESETHAND | SA_NODEFER | SA_ONSTACK, 0x04000000, 0x0c00};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct sigaction action = {.sa_handler = count_run, .sa_flags = (int)flags[i]};
        sigaction(SIGUSR1, &action, 0);
        tell(SIGUSR1);
    }
}
static void odd_handlers(void) {
    void (*const handlers[])(int) = {SIG_IGN, SIG_DFL, SIG_ERR, SIG_HOLD, (void (*)(int))3, (void (*)(int))77, count_run};
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        struct sigaction action = {.sa_handler = handlers[i], .sa_flags = SA_RESTART | SA_NODEFER};
        sigaddset(&action.sa_mask, SIGINT);
        sigaction(SIGUSR1, &action, 0);
        tell(SIGUSR1);
        tell_kernel();
    }
}
static void odd_masks(void) {
    struct sigaction action = {.sa_handler = count_run};
    memset(&action.sa_mask, 0xff, sizeof action.sa_mask);
    sigaction(SIGUSR1, &action, 0);
    tell(SIGUSR1);
    for (int number = 1; number <= 64; number += 7) {
        memset(&action.sa_mask, 0, sizeof action.sa_mask);
        ((unsigned long *)&action.sa_mask)[0] = 1ul << (number - 1);
        sigaction(SIGUSR2, &action, 0);
        tell(SIGUSR2);
    }
}
static void every_number(void) {
    for (int number = -1; number <= 66; number++) {
        struct sigaction action = {.sa_handler = count_run, .sa_flags = SA_RESTART};
        errno = 0;
        int status = sigaction(number, &action, 0);
        say(" %d:%d/%d", number, status, errno);
        tell(number);
    }
    tell_kernel();
}
static void old_and_new(void) {
    struct sigaction both = {.sa_sigaction = record, .sa_flags = SA_SIGINFO | SA_RESTART}, *volatile same = &both;
    for (int i = 0; i < 3; i++) {
        int status = sigaction(SIGUSR1, same, &both);
        say("%d %s %x, ", status, name_of(both.sa_handler), both.sa_flags);
    }
    tell(SIGUSR1);
    memset(&both, 0xa5, sizeof both);
    say(" bad number %d ", sigaction(99, same, &both));
    say("%x", both.sa_flags);
    // The restorer is the C library's, not the program's.
    struct sigaction action = {.sa_handler = count_run, .sa_restorer = (void (*)(void))77};
    sigaction(SIGUSR1, &action, 0);
    raise(SIGUSR1);
    tell(SIGUSR1);
    say(" runs %d", (int)runs);
}

typedef sighandler_t (*set_handler)(int, sighandler_t);
static void through(const char *way, set_handler set) {
    if (!set) {
        say("%s: none; ", way);
        return;
    }
    signal(SIGUSR1, SIG_DFL);
    errno = 0;
    say("%s: %s", way, name_of(set(SIGUSR1, count_run)));
    tell(SIGUSR1);
    say(" %s", name_of(set(SIGUSR1, SIG_IGN)));
    tell(SIGUSR1);
    say(" %s", name_of(set(SIGUSR1, count_run)));
    int before = runs;
    enter();
    kill(getpid(), SIGUSR1);
    int inside = runs - before;
    leave();
    say(" inside %d after %d", inside, runs - before);
    tell(SIGUSR1);
    set(SIGUSR1, SIG_DFL);
    tell(SIGUSR1);
    errno = 0;
    say(" %s", name_of(set(SIGKILL, count_run)));
    say("/%d", errno);
    errno = 0;
    say(" %s", name_of(set(32, count_run)));
    say("/%d", errno);
    errno = 0;
    say(" %s/", name_of(set(SIGUSR1, SIG_ERR)));
    say("%d; ", errno);
}
static void functions(void) {
    through("signal", signal);
    through("bsd_signal", bsd_signal);
    through("ssignal", ssignal);
    through("sysv_signal", sysv_signal);
    through("__sysv_signal", __sysv_signal);
    through("sigset", sigset);
}
static void looked_up(void) {
    static const char *const names[] = {"signal", "bsd_signal", "ssignal", "sysv_signal", "__sysv_signal", "sigset"};
    void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        say("%s ", names[i]);
        through("default", (set_handler)dlsym(RTLD_DEFAULT, names[i]));
        through("next", (set_handler)dlsym(RTLD_NEXT, names[i]));
        through("library", (set_handler)dlsym(library, names[i]));
        through("version", (set_handler)dlvsym(RTLD_DEFAULT, names[i], "GLIBC_2.2.5"));
    }
}

typedef int (*set_action)(int, const struct sigaction *, struct sigaction *);
static void action_through(const char *way, set_action set) {
    struct sigaction action = {.sa_sigaction = record, .sa_flags = SA_SIGINFO | SA_RESTART}, old;
    if (!set) {
        say("%s: none; ", way);
        return;
    }
    runs = 0;
    set(SIGUSR1, &action, 0);
    enter();
    kill(getpid(), SIGUSR1);
    int inside = runs;
    leave();
    set(SIGUSR1, 0, &old);
    say("%s: inside %d after %d %s %x; ", way, inside, (int)runs, name_of(old.sa_handler), old.sa_flags);
    signal(SIGUSR1, SIG_DFL);
}
static void actions_looked_up(void) {
    static const char *const names[] = {"sigaction", "__sigaction"};
    void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    action_through("sigaction", sigaction);
    action_through("__sigaction", __sigaction);
    for (size_t i = 0; i < 2; i++) {
        action_through("default", (set_action)dlsym(RTLD_DEFAULT, names[i]));
        action_through("next", (set_action)dlsym(RTLD_NEXT, names[i]));
        action_through("library", (set_action)dlsym(library, names[i]));
        action_through("version", (set_action)dlvsym(library, names[i], "GLIBC_2.2.5"));
    }
}

// sigvec(2) is gone from the headers and the linker's sight, not from the library.
static void old_vector(void) {
    struct {
        void (*handler)(int);
        int mask, flags;
    } new = {count_run, 2, 2}, old = {0, 0, 0};
    int (*set)(int, const void *, void *) = (int (*)(int, const void *, void *))dlvsym(RTLD_DEFAULT, "sigvec", "GLIBC_2.2.5");
    if (!set) {
        say("no sigvec");
        return;
    }
    say("%d", set(SIGUSR1, &new, &old));
    tell(SIGUSR1);
    enter();
    kill(getpid(), SIGUSR1);
    say(" inside %d", (int)runs);
    leave();
    say(" after %d %d", (int)runs, set(SIGUSR1, 0, &old));
    say(" %s %x %x", name_of(old.handler), old.mask, old.flags);
}

static void interruptible(void) {
    for (int flag = 1; flag >= 0; flag--) {
        say("%d ", siginterrupt(SIGUSR1, flag));
        tell(SIGUSR1);
        signal(SIGUSR1, count_run);
        signal(SIGUSR2, count_run);
        tell(SIGUSR1);
        tell(SIGUSR2);
    }
    struct sigaction action = {.sa_handler = count_run, .sa_flags = SA_NODEFER};
    sigaction(SIGHUP, &action, 0);
    siginterrupt(SIGHUP, 0);
    tell(SIGHUP);
    siginterrupt(SIGHUP, 1);
    tell(SIGHUP);
    errno = 0;
    say(" %d ", siginterrupt(99, 1));
    say("%d", errno);
}
static void system_v(void) {
    sigset_t now;
    say("%s ", name_of(sigset(SIGUSR1, count_run)));
    say("%s ", name_of(sigset(SIGUSR1, SIG_HOLD)));
    kill(getpid(), SIGUSR1);
    sigprocmask(SIG_BLOCK, 0, &now);
    say("blocked %d runs %d ", sigismember(&now, SIGUSR1), (int)runs);
    say("%s ", name_of(sigset(SIGUSR1, count_run)));
    say("runs %d ", (int)runs);
    tell(SIGUSR1);
    say(" sigignore %d ", sigignore(SIGUSR1));
    tell(SIGUSR1);
    say(" sighold %d ", sighold(SIGUSR2));
    say("%s ", name_of(sigset(SIGUSR2, count_run)));
    tell(SIGUSR2);
    errno = 0;
    say(" %d", sigignore(99));
    say("/%d", errno);
    errno = 0;
    say(" %d", sighold(99));
    say("/%d", errno);
    errno = 0;
    say(" %d", sigrelse(SIGKILL));
    say("/%d", errno);
}

// Actions that the kernel itself looks at.
static void children(void) {
    struct sigaction action = {.sa_handler = count_run, .sa_flags = SA_NOCLDWAIT};
    sigaction(SIGCHLD, &action, 0);
    pid_t child = fork();
    if (child == 0) _exit(0);
    errno = 0;
    say("SA_NOCLDWAIT: %d/", waitpid(child, 0, 0));
    say("%d runs %d; ", errno, (int)runs);
    signal(SIGCHLD, SIG_IGN);
    child = fork();
    if (child == 0) _exit(0);
    errno = 0;
    say("SIG_IGN: %d/", waitpid(child, 0, 0));
    say("%d; ", errno);
    for (int flags = 0; flags <= SA_NOCLDSTOP; flags += SA_NOCLDSTOP) {
        int status;
        action.sa_flags = flags;
        runs = 0;
        sigaction(SIGCHLD, &action, 0);
        child = fork();
        if (child == 0) {
            raise(SIGSTOP);
            _exit(0);
        }
        while (waitpid(child, &status, WUNTRACED) != child) {}
        say("flags %x: %s, runs %d; ", flags, ended(status), (int)runs);
        kill(child, SIGKILL);
        while (waitpid(child, &status, 0) != child) {}
    }
}
// A handler set over one that a library's constructor would have set, given back as it was.
static void chained(void) {
    struct sigaction mine = {.sa_sigaction = record, .sa_flags = SA_SIGINFO | SA_ONSTACK}, other = {.sa_handler = count_run}, old;
    sigaction(SIGUSR1, &mine, 0);
    sigaction(SIGUSR1, &other, &old);
    old.sa_sigaction(SIGUSR1, &(siginfo_t){.si_code = 5}, 0);
    say("%s %x runs %d ", name_of(old.sa_handler), old.sa_flags, (int)runs);
    sigaction(SIGUSR1, &old, &other);
    say("%s ", name_of(other.sa_handler));
    tell(SIGUSR1);
    say(" through signal: %s", name_of(signal(SIGUSR1, count_run)));
    say(" %s ", name_of(signal(SIGUSR1, SIG_DFL)));
    tell_kernel();
}
static void never_wrapped(void) {
    // What libc's own two signals are set to is the kernel's business; a section has nothing to do with them.
    char line[256];
    pthread_t thread;
    if (pthread_create(&thread, 0, do_nothing, 0) || pthread_cancel(thread) || pthread_join(thread, 0)) give_up("threads");
    if (setgid(getgid())) give_up("setgid");
    tell_kernel();
    FILE *status = fopen("/proc/self/status", "r");
    enter();
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "SigBlk", 6)) say(" blocked %s", strtoul(line + 7, 0, 16) & 0x180000000 ? "some" : "none");
    leave();
}

// Two actions take turns while signals come: each handler must run under its own mask and with its own flags, never
// with the other's.
static volatile int torn, torn_masks, stop_turns, first_runs, second_runs;
static void check_mask(int mine, int other) {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, 0, &now);
    torn_masks += sigismember(&now, mine) != 1 || sigismember(&now, other) != 0;
}
static void first_handler(int number) {
    (void)number;
    first_runs++;
    check_mask(SIGUSR2, SIGHUP);
}
static void second_handler(int number, siginfo_t *information, void *context) {
    (void)context;
    second_runs++;
    check_mask(SIGHUP, SIGUSR2);
    torn += information->si_signo != number;
}
static void *takes_turns(void *unused) {
    struct sigaction first = {.sa_handler = first_handler, .sa_flags = SA_RESTART}, second = {.sa_sigaction = second_handler, .sa_flags = SA_SIGINFO};
    struct sigaction old;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    sigaddset(&first.sa_mask, SIGUSR2);
    sigaddset(&second.sa_mask, SIGHUP);
    sigaction(SIGUSR1, &first, 0);
    runs = 1;
    while (!stop_turns) {
        sigaction(SIGUSR1, &second, &old);
        torn += old.sa_handler != first_handler || old.sa_flags != (SA_RESTART | 0x04000000);
        sigaction(SIGUSR1, &first, &old);
        torn += old.sa_sigaction != second_handler || old.sa_flags != (SA_SIGINFO | 0x04000000);
    }
    return unused;
}
static void turns(void) {
    pthread_t thread;
    if (pthread_create(&thread, 0, takes_turns, 0)) give_up("a thread");
    while (!runs) sched_yield();
    int sent = 0, enough = times(20000), each = times(100);
    for (; sent < enough || first_runs < each || second_runs < each; sent++) {
        if (sent & 1) enter();
        pthread_kill(pthread_self(), SIGUSR1);
        if (sent & 1) leave();
    }
    stop_turns = 1;
    pthread_join(thread, 0);
    say("torn %d masks %d, lost %d", torn, torn_masks, sent - first_runs - second_runs);
}

// The program's own definition comes first, and finds the C library's behind it.
static volatile int interposed;
__attribute__((visibility("default"))) int siginterrupt(int number, int flag) {
    int (*next)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "siginterrupt");
    interposed++;
    return next(number, flag);
}
static void interposes(void) {
    int (*found)(int, int) = (int (*)(int, int))dlsym(RTLD_DEFAULT, "siginterrupt");
    signal(SIGUSR1, count_run);
    say("%d %d", siginterrupt(SIGUSR1, 1), found == siginterrupt);
    tell(SIGUSR1);
    say(" own %d", (int)interposed);
}

static const struct test_case cases[] = {
    {"each flag alone", each_flag, "=", 0, 0},
    {"flags together", flags_together, "=", 0, 0},
    {"SIG_IGN, SIG_DFL and handlers that are none", odd_handlers, "=", 0, 0},
    {"masks", odd_masks, "=", 0, 0},
    {"every number, and numbers that are none", every_number, "=", 0, 0},
    {"old and new in one", old_and_new, "=", 0, 0},
    {"signal and its kin", functions, "=", 0, 0},
    {"signal and its kin by dlsym and dlvsym", looked_up, "=", 0, 0},
    {"sigaction by dlsym and dlvsym", actions_looked_up, "=", 0, 0},
    {"sigvec", old_vector, "=", 0, 0},
    {"siginterrupt", interruptible, "=", 0, 0},
    {"sigset, sigignore, sighold, sigrelse", system_v, "=", 0, 0},
    {"SA_NOCLDWAIT, SA_NOCLDSTOP, SIGCHLD ignored", children, "=", 0, 0},
    {"handlers chained", chained, "=", 0, 0},
    {"two actions take turns while signals come", turns, "torn 0 masks 0, lost 0", 0, 0},
    {"a definition of the program's own", interposes, "=", 0, 0},
    {"32 and 33", never_wrapped, "=", 0, 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
