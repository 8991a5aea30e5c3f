// The rows of the table of semantics: what happens inside a section, a case or several for each row. Where the
// user-mode back end cannot do what sigprocmask does, what it does is written beside it: these differences are known
// and must stay what they are.
#define _GNU_SOURCE
#include "asleep.h"
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/user.h>

static int is_user(void) { return !strcmp(backend(), "user"); }
// Something is in the slot of user mode; elsewhere nobody but the section's end sets PEND.
static int is_pending(void) { return is_user() && (*(volatile unsigned *)sigblock_word() & 1); }

// Memory that a child and its parent share.
static volatile int *shared(void) {
    void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) give_up("mmap");
    return page;
}

// The system calls between two calls of getppid, counted by a tracer.
static void per_section(void) {
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        enter();
        leave();
        syscall(SYS_getppid);
        for (int i = 0; i < 100; i++) {
            enter();
            enter();
            leave();
            leave();
        }
        syscall(SYS_getppid);
        _exit(0);
    }
    int status, inside = 0, masks = 0, others = 0, entry = 1;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) give_up("ptrace");
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, child, 0, 0) || waitpid(child, &status, 0) != child) give_up("ptrace");
        if (!WIFSTOPPED(status)) break;
        struct user_regs_struct registers;
        ptrace(PTRACE_GETREGS, child, 0, &registers);
        if (entry) {
            if (registers.orig_rax == SYS_getppid) inside = !inside;
            else if (inside && registers.orig_rax == SYS_rt_sigprocmask) masks++;
            else if (inside) others++;
        }
        entry = !entry;
    }
    say("100 sections: %d rt_sigprocmask, %d others", masks, others);
}

static void held_then_run(int number) {
    on(number, 0);
    stage = 1;
    enter();
    kill(getpid(), number);
    say("inside %d", (int)runs);
    stage = 2;
    leave();
    say(", after %d at stage %d", (int)runs, seen[0].stage);
}
static void asynchronous_standard(void) { held_then_run(SIGUSR1); }
static void asynchronous_real_time(void) { held_then_run(SIGRTMIN + 1); }

static void default_terminates(void) {
    enter();
    kill(getpid(), SIGTERM);
    say("still inside,");
    leave();
    say(" alive");
}

static void stops_at(int number) {
    volatile int *at = shared();
    pid_t child = fork();
    if (child == 0) {
        on(SIGCONT, 0);
        enter();
        *at = 1;
        kill(getpid(), number);
        *at = 2;
        stage = 1;
        leave();
        *at = 3;
        _exit(runs == 1 ? 40 + seen[0].stage : 99);
    }
    int status = 0;
    if (waitpid(child, &status, WUNTRACED) != child) give_up("waitpid");
    say("%s at stage %d", ended(status), *at);
    kill(child, SIGCONT);
    say(", SIGCONT: %s", await(child));
}
static void default_stops(void) { stops_at(SIGTSTP); }
static void stop_acts(void) { stops_at(SIGSTOP); }

static void kill_acts(void) {
    enter();
    kill(getpid(), SIGKILL);
    say("still inside");
}

static char *fault_page;
static void fault(int number, siginfo_t *information, void *context) {
    record(number, information, context);
    say("handler of %d at stage %d, address %s; ", number, (int)stage, information->si_addr == fault_page ? "right" : "wrong");
    mprotect(fault_page, 4096, PROT_READ | PROT_WRITE);
}
static void fault_passes(void) {
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
    fault_page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, 0);
    on(SIGTRAP, 0);
    enter();
    stage = 1;
    *fault_page = 1;
    __asm__ volatile("int3");
    stage = 2;
    leave();
    say("%d runs, the last at stage %d", (int)runs, seen[1].stage);
}

static volatile pid_t handled_by[2];
static void note_thread(int number) { handled_by[number == SIGUSR2] = (pid_t)syscall(SYS_gettid); }
static volatile int ready;
static void *free_thread(void *unused) {
    ready = 1;
    for (;;) sleep_milliseconds(5);
    return unused;
}
static void start_free_thread(void) {
    pthread_t thread;
    signal(SIGUSR1, note_thread);
    signal(SIGUSR2, note_thread);
    if (pthread_create(&thread, 0, free_thread, 0)) give_up("pthread_create");
    while (!ready) sleep_milliseconds(1);
}
static const char *by(int which) { return !handled_by[which] ? "nobody" : handled_by[which] == getpid() ? "the section's thread" : "the free thread"; }
static void group_directed_first(void) {
    start_free_thread();
    enter();
    kill(getpid(), SIGUSR1);
    while (!handled_by[0] && !is_pending()) sleep_milliseconds(1);
    say("inside by %s", by(0));
    leave();
    while (!handled_by[0]) sleep_milliseconds(1);
    say(", in the end by %s", by(0));
}
static void group_directed_second(void) {
    start_free_thread();
    enter();
    kill(getpid(), SIGUSR1);
    while (!handled_by[0] && !is_pending()) sleep_milliseconds(1);
    kill(getpid(), SIGUSR2);
    while (!handled_by[1]) sleep_milliseconds(1);
    say("the second inside by %s", by(1));
    leave();
}

// The main thread reads from a pipe inside a section; a helper signals it when it sleeps, and writes when that cannot
// matter any more.
static int reading[2];
static pthread_t main_thread;
static unsigned *main_word;
static volatile int signals_wanted, is_interrupted;
static void *interrupt_reader(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    for (int number = 1; number <= 2; number++) {
        while (signals_wanted < number) sleep_milliseconds(1);
        until_asleep(getpid(), SYS_read, reading[0]);
        pthread_kill(main_thread, number == 1 ? SIGUSR1 : SIGUSR2);
        // In user mode the call's fate is decided once the signal is in the slot; elsewhere it was when the signal
        // was sent.
        while (number == 1 && is_user() && !(*(volatile unsigned *)main_word & 1)) sleep_milliseconds(1);
        // A call that was interrupted needs no byte, and the next would find it.
        if (number == 1 && is_interrupted) continue;
        if (write(reading[1], "x", 1) != 1) _exit(93);
    }
    return unused;
}
static void sleeping(int flags) {
    pthread_t helper;
    char byte;
    on(SIGUSR1, flags);
    on(SIGUSR2, 0);
    is_interrupted = is_user() && !(flags & SA_RESTART);
    main_thread = pthread_self();
    main_word = sigblock_word ? sigblock_word() : 0;
    if (pipe(reading) || pthread_create(&helper, 0, interrupt_reader, 0)) give_up("a helper");
    enter();
    for (int number = 1; number <= 2; number++) {
        signals_wanted = number;
        ssize_t got = read(reading[0], &byte, 1);
        say("%s%s", number == 1 ? "first: " : ", later: ", got == 1 ? "a byte" : got < 0 ? strerror(errno) : "end");
    }
    say(", runs %d", (int)runs);
    leave();
    say(" then %d", (int)runs);
}
static void sleeping_plain(void) { sleeping(0); }
static void sleeping_restart(void) { sleeping(SA_RESTART); }

static void ignored(void) {
    signal(SIGUSR1, SIG_IGN);
    enter();
    kill(getpid(), SIGUSR1);
    leave();
    on(SIGUSR1, 0);
    enter();
    kill(getpid(), SIGCHLD);
    kill(getpid(), SIGWINCH);
    leave();
    say("runs %d", (int)runs);
}
static void ignored_then_handled(void) {
    signal(SIGUSR1, SIG_IGN);
    enter();
    kill(getpid(), SIGUSR1);
    on(SIGUSR1, 0);
    leave();
    say("runs %d", (int)runs);
}
static void handled_then_ignored(void) {
    on(SIGUSR1, 0);
    enter();
    kill(getpid(), SIGUSR1);
    signal(SIGUSR1, SIG_IGN);
    leave();
    say("runs %d", (int)runs);
    on(SIGUSR1, 0);
    enter();
    leave();
    say(" then %d", (int)runs);
}
static void handled_then_default(void) {
    on(SIGTERM, 0);
    enter();
    kill(getpid(), SIGTERM);
    signal(SIGTERM, SIG_DFL);
    say("inside %d,", (int)runs);
    leave();
    say(" alive");
}
static void another_handler(int number, siginfo_t *information, void *context) {
    record(number, information, context);
    say("the later handler, ");
}
static void handled_then_another(void) {
    struct sigaction action = {.sa_sigaction = another_handler, .sa_flags = SA_SIGINFO};
    on(SIGUSR1, 0);
    enter();
    kill(getpid(), SIGUSR1);
    sigaction(SIGUSR1, &action, 0);
    leave();
    say("runs %d", (int)runs);
}

static void waited_for(void) {
    sigset_t one;
    siginfo_t information;
    struct timespec now = {0, 0};
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    on(SIGUSR1, 0);
    enter();
    kill(getpid(), SIGUSR1);
    int got = sigtimedwait(&one, &information, &now);
    say("sigtimedwait %s", got == SIGUSR1 ? "has it" : got < 0 ? strerror(errno) : "another");
    leave();
    say(", handler %d", (int)runs);
}
static void from_descriptor(void) {
    sigset_t one;
    struct signalfd_siginfo information;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    on(SIGUSR1, 0);
    int descriptor = signalfd(-1, &one, SFD_NONBLOCK);
    enter();
    kill(getpid(), SIGUSR1);
    ssize_t got = read(descriptor, &information, sizeof information);
    say("signalfd %s", got == sizeof information ? "has it" : got < 0 ? strerror(errno) : "half");
    leave();
    say(", handler %d", (int)runs);
}
static void shown_pending(void) {
    sigset_t pending;
    on(SIGUSR1, 0);
    on(SIGUSR2, 0);
    enter();
    kill(getpid(), SIGUSR1);
    sigpending(&pending);
    say("first %d", sigismember(&pending, SIGUSR1));
    kill(getpid(), SIGUSR2);
    sigpending(&pending);
    say(", later %d", sigismember(&pending, SIGUSR2));
    leave();
    sigpending(&pending);
    say(", after the end %d %d, runs %d", sigismember(&pending, SIGUSR1), sigismember(&pending, SIGUSR2), (int)runs);
}

// A handler that the C library knows nothing of.
static void set_behind_its_back(void) {
    struct {
        void (*handler)(int, siginfo_t *, void *);
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } raw;
    on(SIGUSR1, 0);
    if (syscall(SYS_rt_sigaction, SIGUSR1, 0, &raw, 8)) give_up("rt_sigaction");
    raw.handler = record;
    if (syscall(SYS_rt_sigaction, SIGUSR1, &raw, 0, 8)) give_up("rt_sigaction");
    enter();
    raise(SIGUSR1);
    say("inside %d", (int)runs);
    leave();
    say(", after %d", (int)runs);
}

static volatile int traced_stage;
static void stop_of_tracer(void) {
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        on(SIGUSR1, 0);
        traced_stage = 1;
        enter();
        raise(SIGUSR1);
        traced_stage = 2;
        leave();
        _exit(runs);
    }
    int status, stops = 0;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        errno = 0;
        long at = ptrace(PTRACE_PEEKDATA, child, (void *)&traced_stage, 0);
        if (errno) give_up("ptrace");
        if (stops++ < 2) say("stop for %d at stage %d, ", WSTOPSIG(status), (int)at);
        ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status));
    }
    say("%s", ended(status));
}

static const struct test_case cases[] = {
    {"per section, no signal", per_section,
     "100 sections: 200 rt_sigprocmask, 0 others", "100 sections: 0 rt_sigprocmask, 0 others", 0,
     "100 sections: 0 rt_sigprocmask, 0 others"},
    {"asynchronous, handler: held", asynchronous_standard, "inside 0, after 1 at stage 2", 0, 0},
    {"asynchronous, handler, real-time: held", asynchronous_real_time, "inside 0, after 1 at stage 2", 0, 0},
    {"default action terminates: held, in user mode inside", default_terminates,
     "still inside, signal 15", " signal 15", 0},
    {"default action stops: held, in user mode inside", default_stops,
     "stopped 20 at stage 2, SIGCONT: exit 41", "stopped 20 at stage 1, SIGCONT: exit 41", 0},
    {"SIGKILL acts", kill_acts, " signal 9", 0, 0},
    {"SIGSTOP acts, SIGCONT continues, its handler is held", stop_acts,
     "stopped 19 at stage 1, SIGCONT: exit 41", 0, 0},
    {"synchronous fault: handler runs inside", fault_passes,
     "handler of 11 at stage 1, address right; 2 runs, the last at stage 1", 0, 0},
    {"group-directed, other thread free, first", group_directed_first,
     "inside by the free thread, in the end by the free thread",
     "inside by nobody, in the end by the section's thread",
     0},
    {"group-directed, other thread free, later", group_directed_second, "the second inside by the free thread", 0, 0},
    {"sleeping call", sleeping_plain,
     "first: a byte, later: a byte, runs 0 then 2", "first: Interrupted system call, later: a byte, runs 0 then 2", 0},
    {"sleeping call, SA_RESTART", sleeping_restart, "first: a byte, later: a byte, runs 0 then 2", 0, 0},
    {"ignored signal: dropped", ignored, "runs 0", 0, 0},
    {"ignored signal, then a handler: dropped, but with sigprocmask", ignored_then_handled, "runs 1", "runs 0", 0, "runs 0"},
    {"held signal, then ignored: dropped", handled_then_ignored, "runs 0 then 0", 0, 0},
    {"held signal, then the default action", handled_then_default, "inside 0, signal 15", 0, 0},
    {"held signal, then another handler", handled_then_another, "the later handler, runs 1", 0, 0},
    {"sigtimedwait of a held one", waited_for, "sigtimedwait has it, handler 0", 0, 0},
    {"signalfd of a held one: not the first in user mode", from_descriptor,
     "signalfd has it, handler 0", "signalfd Resource temporarily unavailable, handler 1", 0},
    {"sigpending shows held", shown_pending, "first 1, later 1, after the end 0 0, runs 2", 0, 0},
    {"handler set by the kernel's call: in user mode inside", set_behind_its_back, "inside 0, after 1", "inside 1, after 1", 0},
    {"tracer's stop for a held signal: at the end, in user mode inside", stop_of_tracer,
     "stop for 10 at stage 2, exit 1", "stop for 10 at stage 1, stop for 10 at stage 2, exit 1", 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
