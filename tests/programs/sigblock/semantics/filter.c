// Sections under a seccomp filter that kills: it allows what OpenSSH's sandbox allows (sandbox-seccomp-filter.c of
// 9.x, x86-64) and rt_sigreturn, by which every handler returns. A section's end may make no call that a plain
// program would not make. A timer of 1 kHz, started before, interrupts inside and outside.
#define _GNU_SOURCE
#include "cases.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static const int allowed[] = {
    SYS_brk, SYS_clock_gettime, SYS_clock_nanosleep, SYS_close, SYS_exit, SYS_exit_group, SYS_futex, SYS_getpgid, SYS_getpid, SYS_getuid, SYS_getrandom,
    SYS_gettimeofday, SYS_madvise, SYS_mmap, SYS_mprotect, SYS_mremap, SYS_munmap, SYS_nanosleep, SYS_poll, SYS_ppoll, SYS_pselect6, SYS_read, SYS_readv,
    SYS_rt_sigprocmask, SYS_select, SYS_shutdown, SYS_time, SYS_write, SYS_writev, SYS_rt_sigreturn,
};

static void install(void) {
    enum { COUNT = sizeof allowed / sizeof *allowed };
    static struct sock_filter code[COUNT + 6];
    size_t at = 0;
    code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++) code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], (unsigned char)(COUNT - i), 0);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)at, code};
    struct rlimit none = {0, 0};
    // As the sandbox does.
    if (setrlimit(RLIMIT_FSIZE, &none) || setrlimit(RLIMIT_NPROC, &none)) give_up("setrlimit");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) give_up("a seccomp filter");
}

static volatile int inside, was_inside;
static char other_stack[65536];
static volatile int on_other, on_own;
static void tick(int number, siginfo_t *information, void *context) {
    char here;
    (void)number;
    (void)information;
    (void)context;
    if (&here > other_stack && &here < other_stack + sizeof other_stack) on_other++;
    else on_own++;
    was_inside += inside;
    runs++;
}
static void start_timer(int number, int flags) {
    struct sigaction action = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO | flags};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
    struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    timer_t timer;
    sigaction(number, &action, 0);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, 0)) give_up("timer_create");
}
static void rest(long microseconds) {
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += microseconds * 1000;
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - end.tv_sec) * 1000000000L + now.tv_nsec - end.tv_nsec < 0);
}
static int held;
// Sections of 2 ms: in each the timer comes at least once.
static void section(void *unused) {
    (void)unused;
    int before = runs;
    inside = 1;
    rest(2000);
    held += runs == before;
    inside = 0;
}
static void ticks(int number, int flags, int by_callback) {
    start_timer(number, flags);
    install();
    for (int i = 0; i < 100; i++) {
        if (by_callback) in_callback(section, 0);
        else {
            enter();
            section(0);
            leave();
        }
        rest(500);
    }
    // Outside, until as many have come; the more, the later a slow machine's timer was.
    for (int before = runs; runs < before + 100 || runs < 200;) rest(100);
    // ld-linux holds nothing in a callback.
    if (by_callback && !sigblock_word) say("held 100, inside 0, ");
    else say("held %d, inside %d, ", held, was_inside);
    say("depth %u", depth());
}
static void alarm_ticks(void) { ticks(SIGALRM, 0, 0); }
static void real_time_ticks(void) { ticks(SIGRTMIN + 1, SA_RESTART, 0); }
static void alternate_ticks(void) {
    stack_t other = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&other, 0);
    ticks(SIGALRM, SA_ONSTACK | SA_NODEFER, 0);
    say(", on the other stack %s, on its own %s", on_other ? "some" : "none", on_own ? "some" : "none");
}
static void callback_ticks(void) { ticks(SIGALRM, 0, 1); }
// A thread of which nothing is known when its filter comes: all that it calls is bound by then.
static void *late_thread(void *unused) {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, 0);
    install();
    for (int i = 0; i < 20; i++) {
        enter();
        enter();
        section(0);
        leave();
        leave();
        rest(500);
    }
    for (int before = runs; runs < before + 20;) rest(100);
    say("held %d, inside %d, depth %u", held, was_inside, depth());
    _exit(0);
    return unused;
}
static void late(void) {
    pthread_t thread;
    sigset_t all;
    struct rlimit same;
    sigemptyset(&all);
    sigfillset(&all);
    prctl(PR_GET_DUMPABLE);
    if (getrlimit(RLIMIT_CORE, &same) || setrlimit(RLIMIT_CORE, &same)) give_up("setrlimit");
    start_timer(SIGALRM, 0);
    enter();
    section(0);
    leave();
    held = 0;
    say("depth %u, ", depth());
    pthread_sigmask(SIG_SETMASK, &all, 0);
    if (pthread_create(&thread, 0, late_thread, 0)) give_up("pthread_create");
    pthread_join(thread, 0);
}
// The filter itself: what it must kill, it kills.
static void control(void) {
    install();
    say("installed, ");
    syscall(SYS_gettid);
    say("alive");
}
static void no_queue(void) {
    struct rlimit none = {0, 0};
    start_timer(SIGALRM, 0);
    if (setrlimit(RLIMIT_SIGPENDING, &none)) give_up("setrlimit");
    install();
    int sections = 0;
    for (; runs < 20; sections++) {
        enter();
        section(0);
        leave();
    }
    say("not held %d, inside %d", sections - held, was_inside);
}

#define TICKS "held 100, inside 0, depth 0"
static const struct test_case cases[] = {
    {"the filter kills", control, "installed,  signal 31", 0, 0},
    {"SIGALRM at 1 kHz", alarm_ticks, TICKS, 0, 0},
    {"a real-time signal at 1 kHz", real_time_ticks, TICKS, 0, 0},
    // In user mode a held handler is called at the section's end, where the section's stack is: the kernel may not be asked.
    {"SIGALRM at 1 kHz, other stack, SA_NODEFER", alternate_ticks,
     TICKS ", on the other stack some, on its own none", TICKS ", on the other stack some, on its own some", 0},
    {"SIGALRM at 1 kHz, callbacks", callback_ticks, TICKS, 0, 0},
    {"a thread whose first section comes under its filter", late, "depth 0, held 20, inside 0, depth 0", 0, 0},
    {"SIGALRM at 1 kHz, RLIMIT_SIGPENDING 0", no_queue, "not held 0, inside 0", 0, 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
