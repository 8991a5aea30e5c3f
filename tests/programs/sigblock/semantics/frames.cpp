// What a handler finds around it, when it is called at once and when it was held: its context, its stack, frames that can be unwound to
// main, and ways out of it by exception, by the end of its thread, by another context.
#include "cases.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/auxv.h>
#include <ucontext.h>

static bool in_stack(unsigned long address) {
    pthread_attr_t attributes;
    void *bottom = 0;
    size_t size = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &bottom, &size);
    pthread_attr_destroy(&attributes);
    return address >= (unsigned long)bottom && address < (unsigned long)bottom + size;
}
static bool is_code(unsigned long address) {
    Dl_info found;
    char line[512];
    unsigned long first, end;
    char access[8];
    bool executable = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        executable |= sscanf(line, "%lx-%lx %7s", &first, &end, access) == 3 && address >= first && address < end && access[2] == 'x';
    if (maps) fclose(maps);
    return executable && dladdr((void *)address, &found);
}
static void looks_at_context(int number, siginfo_t *information, void *context) {
    ucontext_t *interrupted = (ucontext_t *)context;
    record(number, information, context);
    say("code %d stack %d blocked %d; ", is_code((unsigned long)interrupted->uc_mcontext.gregs[REG_RIP]),
        in_stack((unsigned long)interrupted->uc_mcontext.gregs[REG_RSP]), sigismember(&interrupted->uc_sigmask, SIGHUP));
}
static void set(int number, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(number, &action, 0);
}
static void context() {
    set(SIGUSR1, looks_at_context, 0);
    set(SIGRTMIN + 1, looks_at_context, 0);
    raise(SIGUSR1);
    enter();
    raise(SIGUSR1);
    leave();
    enter();
    raise(SIGRTMIN + 1);
    raise(SIGRTMIN + 1);
    leave();
    say("runs %d", (int)runs);
}

// The smallest other stack that POSIX lets a program have, with 2 KiB for its handler.
static void small(int number) {
    runs += number > 0;
}
static void small_stack() {
    size_t size = (getauxval(AT_MINSIGSTKSZ) ? getauxval(AT_MINSIGSTKSZ) : 2048) + 2048;
    char *memory = (char *)aligned_alloc(4096, 65536);
    stack_t other;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    memset(memory, 0x5a, 65536);
    other.ss_sp = memory + 32768;
    other.ss_size = size;
    other.ss_flags = 0;
    if (sigaltstack(&other, 0)) give_up("sigaltstack");
    action.sa_handler = small;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, 0);
    raise(SIGUSR1);
    enter();
    raise(SIGUSR1);
    leave();
    int below = 0;
    for (int i = 0; i < 32768; i++) below += memory[i] != 0x5a;
    say("runs %d, bytes below its stack %d", (int)runs, below);
}

// Frames: main's caller of the case is found from inside of the handler.
static void *frames[64];
static int found;
extern "C" __attribute__((noinline)) void the_case_itself();
static void unwinds(int number) {
    int count = backtrace(frames, 64);
    unsigned long start = (unsigned long)&the_case_itself;
    for (int i = 0; i < count; i++) found += (unsigned long)frames[i] > start && (unsigned long)frames[i] < start + 256;
    runs += number > 0;
}
static void visits(void *) { raise(SIGUSR1); }
extern "C" __attribute__((noinline)) void the_case_itself() {
    raise(SIGUSR1);
    say("at once %d ", found);
    enter();
    raise(SIGUSR1);
    leave();
    say("held %d ", found);
    in_callback(visits, 0);
    say("callback %d ", found);
    enter();
    raise(SIGRTMIN + 1);
    leave();
    say("real-time %d", found);
}
static void backtraces() {
    backtrace(frames, 64);
    signal(SIGUSR1, unwinds);
    signal(SIGRTMIN + 1, unwinds);
    the_case_itself();
}

static void throws(int number) { throw number; }
static void visits_and_faults(void *) { *(volatile char *)16 = 1; }
// Built so that a fault may throw (-fnon-call-exceptions).
static void exception_of_fault() {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = throws;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, 0);
    for (int round = 0; round < 3; round++) {
        try {
            visits_and_faults(0);
        } catch (int number) {
            say("%d ", number);
        }
        try {
            in_callback(visits_and_faults, 0);
        } catch (int number) {
            say("%d depth %u, ", number, depth());
        }
    }
    on(SIGUSR1, 0);
    raise(SIGUSR1);
    say("runs %d", (int)runs);
}

// Its thread ends in the handler.
static int cleaned;
static void clean(void *) { cleaned++; }
static void ends_thread(int) { pthread_exit((void *)7); }
static void *holds(void *held) {
    pthread_cleanup_push(clean, 0);
    if (held) enter();
    raise(SIGUSR1);
    if (held) leave();
    pthread_cleanup_pop(0);
    return 0;
}
static void thread_ends_in(bool held) {
    for (int round = 0; round < 2; round++) {
        pthread_t thread;
        void *value = 0;
        signal(SIGUSR1, ends_thread);
        if (pthread_create(&thread, 0, holds, held ? &cleaned : 0) || pthread_join(thread, &value)) give_up("a thread");
        say("%ld cleaned %d, ", (long)value, cleaned);
    }
    on(SIGUSR1, 0);
    raise(SIGUSR1);
    say("runs %d", (int)runs);
}
static void thread_ends_at_once() { thread_ends_in(false); }
static void thread_ends_held() { thread_ends_in(true); }

// A handler that goes on in another context, as schedulers of coroutines do, and back.
static ucontext_t of_main, of_other;
static char stack[1 << 16];
static int turns;
static void other_context() {
    for (;;) {
        turns++;
        swapcontext(&of_other, &of_main);
    }
}
static void switches(int) {
    runs++;
    swapcontext(&of_main, &of_other);
}
static void contexts_in_handler() {
    sigset_t now;
    getcontext(&of_other);
    of_other.uc_stack.ss_sp = stack;
    of_other.uc_stack.ss_size = sizeof stack;
    makecontext(&of_other, other_context, 0);
    signal(SIGUSR1, switches);
    raise(SIGUSR1);
    enter();
    raise(SIGUSR1);
    leave();
    enter();
    raise(SIGUSR1);
    leave();
    sigprocmask(SIG_BLOCK, 0, &now);
    say("runs %d turns %d blocked %d depth %u", (int)runs, turns, sigismember(&now, SIGHUP), depth());
}

// errno is the program's: a section's end does not change it, whatever it had to do.
static void keeps_errno() {
    on(SIGUSR1, 0);
    on(SIGRTMIN + 1, 0);
    errno = 77;
    enter();
    raise(SIGUSR1);
    queue(SIGRTMIN + 1, 1);
    errno = 77;
    leave();
    int first = errno;
    enter();
    leave();
    say("%d %d", first, errno);
}

static const struct test_case cases[] = {
    {"the context", context, "code 1 stack 1 blocked 0; code 1 stack 1 blocked 0; code 1 stack 1 blocked 0; code 1 stack 1 blocked 0; runs 4", 0, 0},
    {"a small other stack", small_stack, "runs 2, bytes below its stack 0", 0, 0},
    {"frames", backtraces, "at once 1 held 2 callback 3 real-time 4", 0, 0},
    {"exception of a fault", exception_of_fault, "11 11 depth 0, 11 11 depth 0, 11 11 depth 0, runs 1", 0, 0},
    {"pthread_exit in a handler", thread_ends_at_once, "=", 0, 0},
    {"pthread_exit in a handler that was held", thread_ends_held, "7 cleaned 1, 7 cleaned 2, runs 1", 0, 0},
    {"another context in a handler", contexts_in_handler, "runs 3 turns 3 blocked 0 depth 0", 0, 0},
    {"errno", keeps_errno, "77 77", 0, 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
