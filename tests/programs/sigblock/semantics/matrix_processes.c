// The table's rows about processes, threads and the word itself: who inherits a section, what a new program gets, what a
// word is worth that cannot be written to or that the program changes by hand. See matrix.c for the others.
#define _GNU_SOURCE
#include "asleep.h"
#include <spawn.h>
#include <sys/mman.h>
#include <sys/rseq.h>

extern char **environ;

static void fork_inherits(void) {
    on(SIGUSR1, 0);
    enter();
    kill(getpid(), SIGUSR1);
    pid_t child = fork();
    if (child == 0) {
        int inside = depth() == 1 && runs == 0;
        stage = 5;
        leave();
        int clean = runs == 0 && depth() == 0;
        kill(getpid(), SIGUSR1);
        _exit(inside + 2 * clean + 4 * (runs == 1));
    }
    say("child: %s", await(child));
    leave();
    say(", parent: %d", (int)runs);
}
static void vfork_inherits(void) {
    static volatile unsigned in_child;
    enter();
    pid_t child = vfork();
    if (child == 0) {
        in_child = depth();
        enter();
        _exit(0);
    }
    say("child %u, parent afterwards %u", in_child, depth());
    waitpid(child, 0, 0);
}
static void *raises(void *unused) {
    unsigned inside = depth();
    raise(SIGUSR1);
    say("thread's sections %u, its signal %s", inside, runs ? "arrives" : "waits");
    return unused;
}
static void thread_inherits(void) {
    pthread_t thread;
    on(SIGUSR1, 0);
    enter();
    if (pthread_create(&thread, 0, raises, 0)) give_up("pthread_create");
    pthread_join(thread, 0);
    leave();
}
// The new program's mask, without the two that only glibc knows.
static void exec_clears(void) {
    char *const command[] = {"grep", "-E", "^(SigPnd|ShdPnd|SigBlk|SigIgn)", "/proc/self/status", 0};
    on(SIGUSR1, 0);
    dup2(report_descriptor, 1);
    enter();
    kill(getpid(), SIGUSR1);
    execv("/bin/grep", command);
    give_up("execv");
}

static void spawn_clears(void) {
    char *const command[] = {"grep", "-E", "^(SigPnd|ShdPnd|SigBlk)", "/proc/self/status", 0};
    pid_t child;
    on(SIGUSR1, 0);
    dup2(report_descriptor, 1);
    enter();
    kill(getpid(), SIGUSR1);
    if (posix_spawn(&child, "/bin/grep", 0, 0, command, environ)) give_up("posix_spawn");
    say("%s, inside %d depth %u", await(child), (int)runs, depth());
    leave();
    say(", after %d", (int)runs);
}
static void thread_of_holder(void) {
    pthread_t thread;
    on(SIGUSR1, 0);
    enter();
    pthread_kill(pthread_self(), SIGUSR1);
    if (pthread_create(&thread, 0, raises, 0)) give_up("pthread_create");
    pthread_join(thread, 0);
    leave();
    say(", runs %d", (int)runs);
}

static char *word;
// By nothing that might have to be bound, or write to the page.
static long raw(long number, long first, const void *second, long third) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(first), "S"(second), "d"(third) : "rcx", "r11", "memory");
    return result;
}
static void bad_word_seen(int number, siginfo_t *information, void *context) {
    (void)context;
    static const char right[] = "a fault at the word's line", wrong[] = "another fault";
    const char *at = (const char *)information->si_addr;
    int expected = number == SIGSEGV && information->si_code == SEGV_ACCERR && at >= word && at < word + 64;
    raw(SYS_write, report_descriptor, expected ? right : wrong, expected ? sizeof right - 1 : sizeof wrong - 1);
    raw(SYS_exit_group, 0, 0, 0);
}
static void bad_word(void) {
    if (!sigblock_word) {
        say("no word");
        return;
    }
    static char stack[65536];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = bad_word_seen, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&other, 0);
    sigaction(SIGSEGV, &action, 0);
    word = (char *)sigblock_word();
    enter();
    leave();
    // The kernel kills a thread whose restartable sequences it cannot write down; glibc may have them in the same page.
    syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, 32, RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
    // Reading stays possible: the thread control block may lie in the same page.
    if (syscall(SYS_mprotect, (uintptr_t)word & -4096UL, 4096, PROT_READ)) give_up("mprotect");
    sigblock_enter();
    say("it can be written to");
}
// The word is lowered without a look at PEND. What waits stays masked until a section's end is told.
static void told_nothing(void) {
    if (!sigblock_word) {
        say("no word");
        return;
    }
    on(SIGUSR1, 0);
    on(SIGUSR2, 0);
    enter();
    enter();
    kill(getpid(), SIGUSR1);
    say("word %x", *sigblock_word());
    leave();
    say(", inner end %x runs %d", *sigblock_word(), (int)runs);
    *(volatile unsigned *)sigblock_word() -= 0x10;
    kill(getpid(), SIGUSR2);
    say(", lowered by hand %x runs %d", *sigblock_word(), (int)runs);
    *(volatile unsigned *)sigblock_word() += 0x10;
    leave();
    say(", end %x runs %d", *sigblock_word(), (int)runs);
}

#define SPAWNED(blocked) \
    "SigPnd: 0000000000000000 ShdPnd: 0000000000000000 SigBlk: " blocked " exit 0, inside 0 depth 1, after 1"
static const struct test_case cases[] = {
    {"fork inherits the section and not what is held", fork_inherits, "child: exit 7, parent: 1", 0, 0},
    // The stand-in's depth is in memory that the child shares; ours is given back.
    {"vfork inherits the section and gives it back", vfork_inherits,
     "child 1, parent afterwards 2", "child 1, parent afterwards 1", "child 1, parent afterwards 1"},
    {"a thread inherits no section; sigprocmask's mask is", thread_inherits,
     "thread's sections 0, its signal waits", "thread's sections 0, its signal arrives", 0,
     "thread's sections 0, its signal arrives"},
    // ld-linux keeps signals blocked that were blocked by hand; a section ends with the program.
    {"exec clears", exec_clears,
     "SigPnd: 0000000000000000 ShdPnd: 0000000000000200 SigBlk: fffffffe3ffbfa07 SigIgn: 0000000000000000 ",
     "SigPnd: 0000000000000000 ShdPnd: 0000000000000000 SigBlk: 0000000000000000 SigIgn: 0000000000000000 ",
     "SigPnd: 0000000000000000 ShdPnd: 0000000000000000 SigBlk: 0000000000000000 SigIgn: 0000000000000000 "},
    // The fallback cannot lend its mask while it lasts; exec, which ends all, can.
    {"posix_spawn clears, but with sigprocmask", spawn_clears, "=", SPAWNED("0000000000000000"), SPAWNED("fffffffe3ffbfa07"),
     SPAWNED("0000000000000000")},
    {"a thread of one that holds inherits no section", thread_of_holder, "=", "thread's sections 0, its signal arrives, runs 2", 0,
     "thread's sections 0, its signal arrives, runs 2"},
    {"bad word: ordinary fault", bad_word,
     "no word", "a fault at the word's line", "a fault at the word's line"},
    // The kernel looks at the word on its next way out.
    {"PEND ignored by the program: masked until a section's end", told_nothing,
     "no word",
     "word 21, inner end 11 runs 0, lowered by hand 1 runs 0, end 0 runs 2",
     "word 21, inner end 11 runs 0, lowered by hand 1 runs 0, end 0 runs 2",
     "word 21, inner end 11 runs 0, lowered by hand 1 runs 2, end 0 runs 2"},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
