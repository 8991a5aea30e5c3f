// How a held signal is delivered at its section's end: what the handler is told, order and number, its stack, its
// mask, and the flags of its action. Each is compared with what ld-linux does for a signal held by sigprocmask.
#define _GNU_SOURCE
#include "asleep.h"
#include <sys/resource.h>

static unsigned char told[2][128];
static volatile int which;
static void keep(int number, siginfo_t *information, void *context) {
    record(number, information, context);
    memcpy(told[which], information, sizeof told[0]);
}
static void keep_on(int number) {
    struct sigaction action = {.sa_sigaction = keep, .sa_flags = SA_SIGINFO};
    sigaction(number, &action, 0);
}

static int number_sent;
static timer_t timer;
static int pipe_ends[2];
static void by_kill(void) { kill(getpid(), number_sent); }
static void by_tgkill(void) { syscall(SYS_tgkill, getpid(), getpid(), number_sent); }
static void by_sigqueue(void) { queue(number_sent, 0x12345678); }
static void by_raise(void) { raise(number_sent); }
static void by_pthread_sigqueue(void) {
    union sigval value = {.sival_ptr = (void *)0x123456789abcdef0};
    pthread_sigqueue(pthread_self(), number_sent, value);
}
static void by_other_code(void) {
    siginfo_t information;
    memset(&information, 0x5a, sizeof information);
    information.si_signo = number_sent;
    information.si_errno = 7;
    information.si_code = -60;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), number_sent, &information);
}
// The signal has arrived, or waits, once the child can be reaped: SIGCHLD is sent first.
static void by_child(void) {
    siginfo_t information;
    pid_t child = fork();
    if (child == 0) _exit(77);
    while (waitid(P_PID, (id_t)child, &information, WEXITED | WNOWAIT)) {}
    waitpid(child, 0, 0);
}
static void by_timer(void) {
    struct itimerspec once = {.it_value.tv_nsec = 1000000};
    sigset_t pending;
    int before = runs;
    timer_settime(timer, 0, &once, 0);
    do {
        sleep_milliseconds(1);
        sigpending(&pending);
    } while (runs == before && !sigismember(&pending, number_sent) && !(sigblock_word && (*(volatile unsigned *)sigblock_word() & 1)));
}
static void by_pipe(void) {
    char byte = 1;
    if (write(pipe_ends[1], &byte, 1) != 1 || read(pipe_ends[0], &byte, 1) != 1) _exit(93);
}

// Once outside of a section and once inside one; what may differ between two sendings is made equal.
static void same_information(int number, void (*send)(void)) {
    number_sent = number;
    keep_on(number);
    which = 0;
    send();
    which = 1;
    enter();
    send();
    int inside = runs - 1;
    leave();
    siginfo_t *held = (siginfo_t *)told[1], *plain = (siginfo_t *)told[0];
    if (number == SIGCHLD) {
        held->si_pid = plain->si_pid = 0;
        held->si_utime = plain->si_utime = held->si_stime = plain->si_stime = 0;
    }
    int differs = -1;
    for (int i = 127; i >= 0; i--)
        if (told[0][i] != told[1][i]) differs = i;
    say("inside %d, runs %d, code %d, first difference at byte %d", inside, (int)runs, held->si_code, differs);
}
static void information_of_kill(void) { same_information(SIGUSR1, by_kill); }
static void information_of_tgkill(void) { same_information(SIGUSR1, by_tgkill); }
static void information_of_raise(void) { same_information(SIGTERM, by_raise); }
static void information_of_sigqueue(void) { same_information(SIGUSR1, by_sigqueue); }
static void information_of_sigqueue_real_time(void) { same_information(SIGRTMIN + 3, by_sigqueue); }
static void information_of_pthread_sigqueue(void) { same_information(SIGRTMAX, by_pthread_sigqueue); }
static void information_of_other_code(void) { same_information(SIGRTMIN + 3, by_other_code); }
static void information_of_child(void) { same_information(SIGCHLD, by_child); }
static void timer_for(int number) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number, .sigev_value.sival_int = 99};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) give_up("timer_create");
    same_information(number, by_timer);
}
static void information_of_timer(void) { timer_for(SIGALRM); }
static void information_of_timer_real_time(void) { timer_for(SIGRTMIN); }
static void information_of_descriptor(void) {
    if (pipe(pipe_ends) || fcntl(pipe_ends[0], F_SETOWN, getpid()) || fcntl(pipe_ends[0], F_SETSIG, SIGRTMIN + 4) ||
        fcntl(pipe_ends[0], F_SETFL, O_ASYNC))
        give_up("O_ASYNC");
    same_information(SIGRTMIN + 4, by_pipe);
}

static void many_in_order(void) {
    on(SIGRTMIN + 2, 0);
    enter();
    for (int i = 0; i < 25; i++) queue(SIGRTMIN + 2, i);
    int inside = runs, wrong = 0;
    leave();
    for (int i = 0; i < runs && i < 25; i++) wrong += seen[i].value != i || seen[i].code != SI_QUEUE;
    say("inside %d, runs %d, out of order %d", inside, (int)runs, wrong);
}
static void tell_order(void) {
    for (int i = 0; i < runs; i++) say(" %d/%d", seen[i].number, seen[i].value);
}
// Several numbers: frames are built in the order of the numbers, so that handlers run in the order of the frames.
// With all signals in each mask they run one after another.
static void numbers_in_order(int block) {
    struct sigaction action = {.sa_sigaction = record, .sa_flags = SA_SIGINFO};
    if (block) sigfillset(&action.sa_mask);
    for (int i = 0; i < 3; i++) sigaction(SIGRTMIN + 5 + i, &action, 0);
    enter();
    for (int i = 0; i < 9; i++) queue(SIGRTMIN + 7 - i % 3, i);
    leave();
    tell_order();
}
static void numbers_blocking(void) { numbers_in_order(1); }
static void numbers_nesting(void) { numbers_in_order(0); }
// Both sent to the thread; then both to the process: in user mode what is in the slot is sent to the thread again,
// beside the second.
static void standard_merge_by(void (*send)(void)) {
    on(SIGUSR1, 0);
    on(SIGUSR2, 0);
    enter();
    for (int i = 0; i < 6; i++) {
        number_sent = i < 5 ? SIGUSR1 : SIGUSR2;
        send();
    }
    leave();
    int first = 0;
    for (int i = 0; i < runs; i++) first += seen[i].number == SIGUSR1;
    say("USR1 %d, all %d", first, (int)runs);
}
static void standard_merge(void) { standard_merge_by(by_tgkill); }
static void standard_merge_process(void) { standard_merge_by(by_kill); }
static void every_number(void) {
    int wanted = 0, held = 0;
    for (int number = 1; number <= SIGRTMAX; number++) {
        sigset_t hold = default_hold();
        if (!sigismember(&hold, number) || number == 32 || number == 33) continue;
        on(number, 0);
        enter();
        queue(number, number);
        held += runs == wanted;
        leave();
        wanted++;
        if (runs != wanted || seen[wanted - 1].number != number || seen[wanted - 1].value != number) say("%d is wrong, ", number);
    }
    say("numbers %d, held %d, runs %d", wanted, held, (int)runs);
}

static void nesting(void) {
    on(SIGUSR1, 0);
    enter();
    enter();
    enter();
    kill(getpid(), SIGUSR1);
    say("%u:%d", depth(), (int)runs);
    for (int i = 0; i < 3; i++) {
        leave();
        say(" %u:%d", depth(), (int)runs);
    }
}
static void opens_itself(int number) {
    say("(%d depth %u", number, depth());
    if (number == SIGUSR1) {
        enter();
        raise(SIGUSR2);
        say(" inside");
        leave();
    }
    say(")");
}
static void handler_opens(void) {
    signal(SIGUSR1, opens_itself);
    signal(SIGUSR2, opens_itself);
    kill(getpid(), SIGUSR1);
    enter();
    kill(getpid(), SIGUSR1);
    say(" end ");
    leave();
    say(" depth %u", depth());
}

static char other_stack[65536];
static void where(int number) {
    char here;
    stack_t now;
    sigaltstack(0, &now);
    say("signal %d on the other stack %d, flags %d; ", number, &here > other_stack && &here < other_stack + sizeof other_stack, now.ss_flags);
}
static void alternate_stack(void) {
    stack_t other = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    struct sigaction action = {.sa_handler = where, .sa_flags = SA_ONSTACK};
    sigaltstack(&other, 0);
    sigaction(SIGUSR1, &action, 0);
    action.sa_flags = 0;
    sigaction(SIGUSR2, &action, 0);
    kill(getpid(), SIGUSR1);
    enter();
    kill(getpid(), SIGUSR1);
    leave();
    enter();
    kill(getpid(), SIGUSR2);
    leave();
}

static void tell_action(int number) {
    struct sigaction now;
    sigaction(number, 0, &now);
    say(" [%s %x]", now.sa_handler == SIG_DFL ? "default" : now.sa_handler == SIG_IGN ? "ignored" : "ours", now.sa_flags);
}
static void told_of_action(int number, siginfo_t *information, void *context) {
    record(number, information, context);
    tell_action(number);
}
static void reset_hand(int flags, int held) {
    struct sigaction action = {.sa_sigaction = told_of_action, .sa_flags = SA_SIGINFO | SA_RESETHAND | flags};
    sigaction(SIGUSR1, &action, 0);
    if (held) enter();
    kill(getpid(), SIGUSR1);
    if (held) {
        tell_action(SIGUSR1);
        leave();
    }
    say(" runs %d", (int)runs);
    tell_action(SIGUSR1);
    kill(getpid(), SIGUSR1);
    say(" alive");
}
static void reset_hand_outside(void) { reset_hand(0, 0); }
static void reset_hand_inside(void) { reset_hand(0, 1); }
static void reset_hand_no_defer(void) { reset_hand(SA_NODEFER, 1); }
static void reset_hand_twice(void) {
    struct sigaction action = {.sa_sigaction = record, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    sigaction(SIGRTMIN + 6, &action, 0);
    enter();
    queue(SIGRTMIN + 6, 1);
    queue(SIGRTMIN + 6, 2);
    leave();
    say("alive");
}

static void tell_mask(const char *what, const sigset_t *mask) {
    say(" %s", what);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(mask, number) == 1) say(" %d", number);
}
static void mask_inside(int number, siginfo_t *information, void *context) {
    sigset_t now;
    ucontext_t *interrupted = context;
    record(number, information, context);
    sigprocmask(SIG_BLOCK, 0, &now);
    tell_mask("runs under", &now);
    tell_mask("returns to", &interrupted->uc_sigmask);
    // What the handler leaves in its frame is the mask afterwards.
    sigaddset(&interrupted->uc_sigmask, SIGHUP);
}
static void handler_mask(int flags) {
    struct sigaction action = {.sa_sigaction = mask_inside, .sa_flags = SA_SIGINFO | flags};
    sigset_t mine, after;
    sigemptyset(&mine);
    sigaddset(&mine, SIGWINCH);
    sigprocmask(SIG_SETMASK, &mine, 0);
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &action, 0);
    for (int held = 0; held < 2; held++) {
        if (held) enter();
        kill(getpid(), SIGUSR1);
        if (held) leave();
        sigprocmask(SIG_SETMASK, &mine, &after);
        tell_mask("afterwards", &after);
    }
}
static void handler_mask_plain(void) { handler_mask(0); }
static void handler_mask_no_defer(void) { handler_mask(SA_NODEFER); }
static void again(int number) {
    runs++;
    say(" in %d", (int)runs);
    if (runs % 3) raise(number);
    say(" out");
}
static void no_defer_recursion(void) {
    struct sigaction action = {.sa_handler = again, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &action, 0);
    enter();
    kill(getpid(), SIGUSR1);
    say("%d", (int)runs);
    leave();
}

// A read outside of a section, interrupted by a process that waits until it sleeps. The byte is written once the
// handler has run.
static int handler_ran[2];
static void acknowledge(int number) {
    runs++;
    if (write(handler_ran[1], "x", 1) != 1) _exit(number);
}
static void restart(int flags) {
    int ends[2];
    char byte;
    struct sigaction action = {.sa_handler = acknowledge, .sa_flags = flags};
    sigaction(SIGUSR1, &action, 0);
    pid_t reader = getpid();
    if (pipe(ends) || pipe(handler_ran)) give_up("pipe");
    pid_t child = fork();
    if (child == 0) {
        until_asleep(reader, SYS_read, ends[0]);
        kill(reader, SIGUSR1);
        _exit(read(handler_ran[0], &byte, 1) != 1 || write(ends[1], "x", 1) != 1);
    }
    ssize_t got = read(ends[0], &byte, 1);
    int error = errno;
    say("%s, runs %d", got == 1 ? "a byte" : strerror(error), (int)runs);
    await(child);
}
static void restart_outside(void) { restart(SA_RESTART); }
static void interrupt_outside(void) { restart(0); }

// No memory for queued signals: a section's end must do without.
static void nothing_queued(void) {
    struct rlimit none = {0, 0};
    on(SIGUSR1, 0);
    on(SIGRTMIN + 1, 0);
    if (setrlimit(RLIMIT_SIGPENDING, &none)) give_up("setrlimit");
    enter();
    kill(getpid(), SIGUSR1);
    leave();
    enter();
    kill(getpid(), SIGRTMIN + 1);
    leave();
    enter();
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGRTMIN + 1);
    say("inside %d", (int)runs);
    leave();
    say(", after %d, depth %u", (int)runs, depth());
    sigset_t now;
    sigprocmask(SIG_BLOCK, 0, &now);
    tell_mask("mask", &now);
}

// Room for ten queued signals of this user in all, or fewer: as many handlers run as were taken.
static void little_room(void) {
    char line[256];
    unsigned long queued = 0;
    struct rlimit few;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "SigQ: %lu/", &queued);
    few.rlim_cur = few.rlim_max = queued + 10;
    on(SIGRTMIN + 2, 0);
    on(SIGUSR1, 0);
    if (setrlimit(RLIMIT_SIGPENDING, &few)) give_up("setrlimit");
    for (int round = 0; round < 5; round++) {
        int taken = 0, before = runs, wrong = 0;
        enter();
        for (int i = 0; i < 25; i++) taken += queue(SIGRTMIN + 2, i) == 0;
        leave();
        for (int i = before; i < runs && i < 256; i++) wrong += seen[i].value != i - before;
        say("%s lost %d wrong %d; ", taken > 0 && taken < 25 ? "some" : "all or none", taken - (runs - before), wrong);
    }
    sigset_t now;
    sigprocmask(SIG_BLOCK, 0, &now);
    tell_mask("mask", &now);
}
// Each handler opens a section in which the next number comes: frames on frames, each with a slot of its own.
static int deepest;
static void opens_next(int number) {
    int before = runs++;
    if (number < SIGRTMIN + 20) {
        enter();
        raise(number + 1);
        deepest += runs == before + 1;
        leave();
    }
    say("%s%d", number < SIGRTMIN + 20 ? " " : "", number);
}
static void many_nested(void) {
    for (int i = 0; i <= 20; i++) signal(SIGRTMIN + i, opens_next);
    enter();
    raise(SIGRTMIN);
    leave();
    say(", held %d, runs %d, depth %u", deepest, (int)runs, depth());
}

#define SAME(code) "inside 0, runs 2, code " code ", first difference at byte -1"
static const struct test_case cases[] = {
    {"siginfo of kill", information_of_kill, SAME("0"), 0, 0},
    {"siginfo of tgkill", information_of_tgkill, SAME("-6"), 0, 0},
    {"siginfo of raise", information_of_raise, SAME("-6"), 0, 0},
    {"siginfo of sigqueue", information_of_sigqueue, SAME("-1"), 0, 0},
    {"siginfo of sigqueue, real-time", information_of_sigqueue_real_time, SAME("-1"), 0, 0},
    {"siginfo of pthread_sigqueue", information_of_pthread_sigqueue, SAME("-1"), 0, 0},
    {"siginfo of a code of the sender's own", information_of_other_code, SAME("-60"), 0, 0},
    {"siginfo of SIGCHLD", information_of_child, SAME("1"), 0, 0},
    {"siginfo of a timer", information_of_timer, SAME("-2"), 0, 0},
    {"siginfo of a timer, real-time", information_of_timer_real_time, SAME("-2"), 0, 0},
    {"siginfo of a descriptor's signal", information_of_descriptor, SAME("1"), 0, 0},
    {"25 real-time signals", many_in_order, "inside 0, runs 25, out of order 0", 0, 0},
    // In user mode the first to come is the first to run: its handler is called at the section's end, before the
    // kernel is asked.
    {"three numbers, one handler after another", numbers_blocking, " 39/2 39/5 39/8 40/1 40/4 40/7 41/0 41/3 41/6",
     " 41/0 39/2 39/5 39/8 40/1 40/4 40/7 41/3 41/6", 0},
    {"three numbers, handlers nested", numbers_nesting, " 41/0 41/3 41/6 40/1 40/4 40/7 39/2 39/5 39/8",
     " 40/1 40/4 40/7 39/2 39/5 39/8 41/0 41/3 41/6", 0},
    {"standard signals merge", standard_merge, "USR1 1, all 2", 0, 0},
    {"standard signals of the process merge, in user mode not with the first", standard_merge_process,
     "USR1 1, all 2", "USR1 2, all 3", 0},
    {"every number that may be held", every_number, "numbers 53, held 53, runs 53", 0, 0},
    {"little room for queued signals", little_room, "=", 0, 0},
    {"21 numbers, one in the other's handler", many_nested, "=", 0, 0},
    {"nesting", nesting, "3:0 2:0 1:0 0:1", 0, 0},
    {"a handler opens sections", handler_opens,
     "(10 depth 0 inside(12 depth 0)) end (10 depth 0 inside(12 depth 0)) depth 0", 0, 0},
    {"SA_ONSTACK", alternate_stack,
     "signal 10 on the other stack 1, flags 1; signal 10 on the other stack 1, flags 1; signal 12 on the other stack 0, flags 0; ",
     0, 0},
    {"SA_RESETHAND, outside", reset_hand_outside, "=", 0, 0},
    {"SA_RESETHAND, held", reset_hand_inside, "=", 0, 0},
    {"SA_RESETHAND and SA_NODEFER, held", reset_hand_no_defer, "=", 0, 0},
    {"SA_RESETHAND, two held", reset_hand_twice, " signal 40", 0, 0},
    {"masks of a handler and of its frame", handler_mask_plain, "=", 0, 0},
    {"masks with SA_NODEFER", handler_mask_no_defer, "=", 0, 0},
    {"SA_NODEFER, a handler that raises", no_defer_recursion, "0 in 1 in 2 in 3 out out out", 0, 0},
    {"SA_RESTART, outside", restart_outside, "a byte, runs 1", 0, 0},
    {"no SA_RESTART, outside", interrupt_outside, "Interrupted system call, runs 1", 0, 0},
    {"RLIMIT_SIGPENDING 0", nothing_queued, "=", 0, 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
