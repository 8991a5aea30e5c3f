// Processes made from inside a section: by fork, vfork, exec, posix_spawn, system, popen. A child starts clean, a new
// program gets the mask and the actions it gets under ld-linux, and a vfork child changes nothing of its parent's.
// Callbacks of dl_iterate_phdr are the loader's own sections; sections of the program's own are tested where a
// program may use them so.
#define _GNU_SOURCE
#include "cases.h"
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;
extern pid_t _Fork(void);

static void note(const char *what) { say("%s ", what); }

// vfork: the child shares the table of actions and the word.
static void tell_after(const char *what) {
    int before = runs;
    struct sigaction now;
    sigaction(SIGUSR1, 0, &now);
    kill(getpid(), SIGUSR1);
    say("%s: handler %s, runs %d, depth %u", what, now.sa_sigaction == record ? "record" : "another", runs - before, depth());
    enter();
    kill(getpid(), SIGUSR1);
    int inside = runs - before;
    leave();
    say(", inside %d after %d; ", inside, runs - before);
}
static void vfork_resets(void) {
    on(SIGUSR1, 0);
    pid_t child = vfork();
    if (child == 0) {
        signal(SIGUSR1, SIG_DFL);
        _exit(3);
    }
    note(await(child));
    tell_after("SIG_DFL");
    child = vfork();
    if (child == 0) {
        signal(SIGUSR1, SIG_IGN);
        _exit(4);
    }
    note(await(child));
    tell_after("SIG_IGN");
    child = vfork();
    if (child == 0) {
        signal(SIGUSR1, count_run);
        _exit(5);
    }
    note(await(child));
    tell_after("another");
}
// What a shell does between vfork and exec; the new program sees it.
static void vfork_prepares(void) {
    sigset_t user2;
    char *const command[] = {"grep", "-E", "^(SigBlk|SigIgn)", "/proc/self/status", 0};
    on(SIGUSR1, 0);
    sigemptyset(&user2);
    sigaddset(&user2, SIGUSR2);
    pid_t child = vfork();
    if (child == 0) {
        dup2(report_descriptor, 1);
        signal(SIGUSR1, SIG_DFL);
        signal(SIGHUP, SIG_IGN);
        sigprocmask(SIG_BLOCK, &user2, 0);
        execve("/bin/grep", command, environ);
        _exit(99);
    }
    note(await(child));
    tell_after("parent");
    struct sigaction hangup;
    sigaction(SIGHUP, 0, &hangup);
    sigprocmask(SIG_BLOCK, 0, &user2);
    say("SIGHUP %d blocked %d", hangup.sa_handler == SIG_DFL, sigismember(&user2, SIGUSR2));
}
static void vfork_ends_inside(int by_signal) {
    static volatile unsigned inside;
    on(SIGUSR1, 0);
    pid_t child = vfork();
    if (child == 0) {
        enter();
        enter();
        inside = depth();
        if (by_signal) kill((pid_t)syscall(SYS_getpid), SIGKILL);
        _exit(6);
    }
    say("%s, child's depth %u, ", await(child), inside);
    tell_after("parent");
}
static void vfork_exits_inside(void) { vfork_ends_inside(0); }
static void vfork_killed_inside(void) { vfork_ends_inside(1); }
static void vfork_executes_inside(void) {
    char *const command[] = {"sh", "-c", "exit 9", 0};
    on(SIGUSR1, 0);
    enter();
    pid_t child = vfork();
    if (child == 0) {
        execve("/bin/sh", command, environ);
        _exit(99);
    }
    leave();
    note(await(child));
    tell_after("parent");
}
// The child's own signal while it shares the parent's memory: it is the child's, and kills it.
static void vfork_signalled(void) {
    on(SIGUSR1, 0);
    pid_t child = vfork();
    if (child == 0) {
        signal(SIGUSR1, SIG_DFL);
        kill((pid_t)syscall(SYS_getpid), SIGUSR1);
        _exit(7);
    }
    note(await(child));
    tell_after("parent");
}
static void vfork_of_holder(void) {
    on(SIGUSR1, 0);
    enter();
    kill(getpid(), SIGUSR1);
    pid_t child = vfork();
    if (child == 0) _exit(runs ? 98 : 8);
    say("%s, inside %d", await(child), (int)runs);
    leave();
    say(", after %d", (int)runs);
}

// fork from a callback with a signal that came in it. How often the handler ran in this very process:
static int own_runs(void) {
    return runs;
}
static void tell_mask_of(const char *who) {
    sigset_t now;
    sigprocmask(SIG_BLOCK, 0, &now);
    say("%s mask", who);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&now, number) == 1) say(" %d", number);
    say("; ");
}
static int by_fork_again;
static pid_t forked;
static void forks(void *unused) {
    (void)unused;
    kill(getpid(), SIGUSR1);
    // The parent's handler runs before the fork, at the latest as the section ends for it.
    forked = by_fork_again ? _Fork() : fork();
    if (forked == 0) {
        runs = 0;
        tell_mask_of("child");
    }
}
static void fork_in_callback(int which) {
    on(SIGUSR1, 0);
    by_fork_again = which;
    in_callback(forks, 0);
    if (forked == 0) {
        int held = own_runs();
        unsigned now = depth();
        kill(getpid(), SIGUSR1);
        int plain = own_runs() - held;
        enter();
        kill(getpid(), SIGUSR1);
        int inside = own_runs() - held - plain;
        leave();
        say("in child %d depth %u plain %d inside %d after %d; ", held, now, plain, inside, own_runs() - held);
        // The child of a callback hangs in its next visit under ld-linux.
        if (sigblock_word) {
            in_callback(forks, 0);
            if (forked == 0) _exit(0);
            say("forks again: %s, ran %d; ", await(forked), own_runs() - held);
        }
        _exit(5);
    }
    say("%s, parent ran %d depth %u", await(forked), own_runs(), depth());
}
static void fork_once(void) { fork_in_callback(0); }
static void fork_underscore(void) { fork_in_callback(1); }
// Each fork meets something that is held; afterwards both come, and the mask is the program's.
static void forks_once(void) {
    pid_t child = fork();
    if (child == 0) {
        sigset_t pending;
        sigpending(&pending);
        leave();
        _exit((int)runs + 10 * sigismember(&pending, SIGUSR1) + 20 * sigismember(&pending, SIGRTMIN + 4));
    }
    say("%s, ", await(child));
}
static void two_forks(void) {
    on(SIGUSR1, 0);
    on(SIGRTMIN + 4, 0);
    for (int round = 0; round < 3; round++) {
        runs = 0;
        enter();
        raise(SIGUSR1);
        forks_once();
        queue(SIGRTMIN + 4, 5);
        forks_once();
        int inside = runs;
        leave();
        say("inside %d after %d ", inside, (int)runs);
        tell_mask_of("own");
    }
}
// The child of a fork shows nothing pending that its parent holds and the program has blocked.
static void pending_in_child(void) {
    sigset_t number, pending;
    sigemptyset(&number);
    sigaddset(&number, SIGRTMIN + 4);
    on(SIGRTMIN + 4, 0);
    enter();
    queue(SIGRTMIN + 4, 5);
    sigprocmask(SIG_BLOCK, &number, 0);
    leave();
    pid_t child = fork();
    if (child == 0) {
        sigpending(&pending);
        _exit(10 + sigismember(&pending, SIGRTMIN + 4));
    }
    sigpending(&pending);
    say("child %s, ", await(child));
    sigprocmask(SIG_UNBLOCK, &number, 0);
    say("parent ran %d", (int)runs);
}
static void told(void) { say("[%u]", depth()); }
static void fork_with_handlers(void) {
    pthread_atfork(told, told, told);
    pid_t child = fork();
    if (child == 0) _exit(0);
    await(child);
}
static void *forks_in_thread(void *unused) {
    forks(unused);
    if (forked == 0) _exit(own_runs() + 10 * (int)depth());
    return unused;
}
static void fork_in_thread(void) {
    pthread_t thread;
    on(SIGUSR1, 0);
    enter();
    kill(getpid(), SIGUSR1);
    if (pthread_create(&thread, 0, forks_in_thread, 0) || pthread_join(thread, 0)) give_up("a thread");
    leave();
    say("child of the other thread %s, own held %d", await(forked), (int)runs > 0);
}

// A new program from a callback, while a signal came in it: which signals are blocked, pending and ignored in it.
enum how { EXECVE, EXECV, EXECVP, EXECVPE, EXECL, EXECLE, EXECLP, FEXECVE, EXECVEAT, SPAWN, SPAWNP, SPAWN_ATTRIBUTES, SYSTEM, POPEN };
#define PATTERN "^(SigPnd|ShdPnd|SigBlk|SigIgn)"
static void starts(void *way) {
    char *const command[] = {"grep", "-E", PATTERN, "/proc/self/status", 0};
    const char *const line = "exec grep -E '" PATTERN "' /proc/self/status";
    pid_t child = 0;
    int status = -1;
    kill(getpid(), SIGUSR1);
    queue(SIGRTMIN + 1, 1);
    switch (*(enum how *)way) {
    case EXECVE: execve("/bin/grep", command, environ); break;
    case EXECV: execv("/bin/grep", command); break;
    case EXECVP: execvp("grep", command); break;
    case EXECVPE: execvpe("grep", command, environ); break;
    case EXECL: execl("/bin/grep", "grep", "-E", PATTERN, "/proc/self/status", (char *)0); break;
    case EXECLE: execle("/bin/grep", "grep", "-E", PATTERN, "/proc/self/status", (char *)0, environ); break;
    case EXECLP: execlp("grep", "grep", "-E", PATTERN, "/proc/self/status", (char *)0); break;
    case FEXECVE: fexecve(open("/bin/grep", O_RDONLY | O_CLOEXEC), command, environ); break;
    case EXECVEAT: execveat(AT_FDCWD, "/bin/grep", command, environ, 0); break;
    case SPAWN: status = posix_spawn(&child, "/bin/grep", 0, 0, command, environ); break;
    case SPAWNP: status = posix_spawnp(&child, "grep", 0, 0, command, environ); break;
    case SPAWN_ATTRIBUTES: {
        posix_spawnattr_t attributes;
        sigset_t set;
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        sigemptyset(&set);
        sigaddset(&set, SIGHUP);
        posix_spawnattr_setsigdefault(&attributes, &set);
        posix_spawnattr_setsigmask(&attributes, &set);
        status = posix_spawn(&child, "/bin/grep", 0, &attributes, command, environ);
        break;
    }
    case SYSTEM: status = system(line); break;
    case POPEN: {
        char text[512];
        FILE *file = popen(line, "r");
        while (file && fgets(text, sizeof text, file)) say("%s", text);
        status = file ? pclose(file) : -1;
    }
    }
    if (child) say("%s ", await(child));
    say("status %d ", status);
}
static void starts_from_callback(enum how how, int blocked) {
    sigset_t user2;
    on(SIGUSR1, 0);
    on(SIGRTMIN + 1, 0);
    signal(SIGHUP, SIG_IGN);
    sigemptyset(&user2);
    sigaddset(&user2, SIGUSR2);
    if (blocked) sigprocmask(SIG_BLOCK, &user2, 0);
    dup2(report_descriptor, 1);
    in_callback(starts, &how);
    say("runs %d depth %u ", (int)runs, depth());
    tell_mask_of("own");
}
#define START(name, how) \
    static void name(void) { starts_from_callback(how, 1); }
START(start_execve, EXECVE)
START(start_execv, EXECV)
START(start_execvp, EXECVP)
START(start_execvpe, EXECVPE)
START(start_execl, EXECL)
START(start_execle, EXECLE)
START(start_execlp, EXECLP)
START(start_fexecve, FEXECVE)
START(start_execveat, EXECVEAT)
START(start_spawn, SPAWN)
START(start_spawnp, SPAWNP)
START(start_spawn_attributes, SPAWN_ATTRIBUTES)
START(start_system, SYSTEM)
START(start_popen, POPEN)
static void start_unblocked(void) { starts_from_callback(EXECVE, 0); }

// An exec that fails leaves all as it was.
static void fails(void *unused) {
    (void)unused;
    char *const command[] = {"none", 0};
    kill(getpid(), SIGUSR1);
    int status = execve("/no/such/file", command, environ);
    say("%d %s, ", status, strerror(errno));
}
static void exec_fails(void) {
    on(SIGUSR1, 0);
    in_callback(fails, 0);
    say("runs %d ", (int)runs);
    tell_after("afterwards");
}

#define NEW "SigPnd: 0000000000000000 ShdPnd: 0000000000000000 SigBlk: 0000000000000800 SigIgn: 0000000000000001 "
#define AFTER " record, runs 1, depth 0, inside 1 after 2; "
#define FORKS_AGAIN "child mask; in child 0 depth 0 plain 1 inside 0 after 2; child mask; forks again: exit 0, ran 3; exit 5, parent ran 1 depth 0"
#define TWICE "exit 0, exit 0, inside 0 after 2 own mask; "
static const struct test_case cases[] = {
    {"a vfork child resets a handler", vfork_resets,
     "exit 3 SIG_DFL: handler" AFTER "exit 4 SIG_IGN: handler" AFTER "exit 5 another: handler" AFTER, 0, 0},
    {"a vfork child prepares an exec", vfork_prepares,
     "SigBlk: 0000000000000800 SigIgn: 0000000000000001 exit 0 parent: handler" AFTER "SIGHUP 1 blocked 0", 0, 0},
    // The hand-made depth is in memory that the child leaves raised.
    {"a vfork child exits inside", vfork_exits_inside,
     "exit 6, child's depth 2, parent: handler record, runs 1, depth 2, inside 2 after 2; ",
     "exit 6, child's depth 2, parent: handler" AFTER, "exit 6, child's depth 2, parent: handler" AFTER},
    {"a vfork child is killed inside", vfork_killed_inside,
     "signal 9, child's depth 2, parent: handler record, runs 1, depth 2, inside 2 after 2; ",
     "signal 9, child's depth 2, parent: handler" AFTER, "signal 9, child's depth 2, parent: handler" AFTER},
    {"a vfork child executes in its parent's section", vfork_executes_inside, "exit 9 parent: handler" AFTER, 0, 0},
    {"a vfork child is killed by its own signal", vfork_signalled, "signal 10 parent: handler" AFTER, 0, 0},
    {"a vfork child of a thread that holds", vfork_of_holder, "exit 8, inside 0, after 1", 0, 0},
    {"fork in a callback", fork_once,
     "child mask; in child 0 depth 0 plain 1 inside 0 after 2; exit 5, parent ran 1 depth 0", FORKS_AGAIN, FORKS_AGAIN},
    {"_Fork in a callback", fork_underscore,
     "child mask; in child 0 depth 0 plain 1 inside 0 after 2; exit 5, parent ran 1 depth 0", FORKS_AGAIN, FORKS_AGAIN},
    {"two forks in a section", two_forks, TWICE TWICE TWICE, 0, 0},
    {"pending in the child of a fork", pending_in_child, "child exit 10, parent ran 1", 0, 0},
    {"handlers of pthread_atfork run outside", fork_with_handlers, "[0][0][0]", 0, 0},
    {"fork in another thread than the one that holds", fork_in_thread,
     "=", "child mask; child of the other thread exit 0, own held 1", 0,
     "child mask; child of the other thread exit 0, own held 1"},
    {"execve", start_execve, NEW, 0, 0},
    {"execv", start_execv, NEW, 0, 0},
    {"execvp", start_execvp, NEW, 0, 0},
    {"execvpe", start_execvpe, NEW, 0, 0},
    {"execl", start_execl, NEW, 0, 0},
    {"execle", start_execle, NEW, 0, 0},
    {"execlp", start_execlp, NEW, 0, 0},
    {"fexecve", start_fexecve, NEW, 0, 0},
    {"execveat", start_execveat, NEW, 0, 0},
    // posix_spawn of glibc 2.36 ignores 32 and 33 in the new program; later ones do not.
    {"posix_spawn", start_spawn, "=", 0, 0},
    {"posix_spawnp", start_spawnp, "=", 0, 0},
    {"posix_spawn with attributes", start_spawn_attributes, "=", 0, 0},
    {"system", start_system, "=", 0, 0},
    {"popen", start_popen, "=", 0, 0},
    {"execve, nothing blocked", start_unblocked,
     "SigPnd: 0000000000000000 ShdPnd: 0000000000000000 SigBlk: 0000000000000000 SigIgn: 0000000000000001 ", 0, 0},
    {"an exec that fails", exec_fails, "-1 No such file or directory, runs 1 afterwards: handler" AFTER, 0, 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
