// Long rows of steps chosen at random, the same in every run: sections, signals to the thread, masks, actions, waits,
// callbacks, children. What is seen on the way is compared with ld-linux, where a section is the mask that holds
// everything, kept apart from the program's own. Handlers that run at the same place are put in the order of their
// numbers: user mode runs the first to come first.
#define _GNU_SOURCE
#include "cases.h"
#include <stdbool.h>

enum { NUMBERS = 5, STEPS = 1000, ROUNDS = 40 };
static __thread int numbers[NUMBERS];
static __thread uint64_t random_state, hash;
static __thread unsigned own_depth;
static bool trace, with_waits;

static unsigned chosen(unsigned below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % below;
}
static void note(const char *what, long first, long second, long third) {
    long values[3] = {first, second, third};
    for (const char *at = what; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    for (int i = 0; i < 3; i++) hash = (hash ^ (uint64_t)values[i]) * 1099511628211u;
    if (trace) fprintf(stderr, "%s %ld %ld %ld depth %u\n", what, first, second, third, own_depth);
}

// The program's mask. Under ld-linux the section's is laid over it here.
static __thread sigset_t own_mask;
static void lay(void) {
    sigset_t hold = default_hold(), both = own_mask;
    if (own_depth)
        for (int number = 1; number <= SIGRTMAX; number++)
            if (sigismember(&hold, number) == 1) sigaddset(&both, number);
    pthread_sigmask(SIG_SETMASK, &both, 0);
}
static void change_mask(int how, const sigset_t *set, sigset_t *old) {
    if (sigblock_word) {
        pthread_sigmask(how, set, old);
        return;
    }
    if (old) *old = own_mask;
    for (int number = 1; set && number <= SIGRTMAX; number++) {
        int member = sigismember(set, number);
        if (how == SIG_SETMASK && member >= 0) member ? sigaddset(&own_mask, number) : sigdelset(&own_mask, number);
        if (how == SIG_BLOCK && member == 1) sigaddset(&own_mask, number);
        if (how == SIG_UNBLOCK && member == 1) sigdelset(&own_mask, number);
    }
    lay();
}
static void open_section(void) {
    own_depth++;
    if (sigblock_word) sigblock_enter();
    else lay();
}
static void close_section(void) {
    own_depth--;
    if (sigblock_word) sigblock_leave();
    else lay();
}

// Signals sent and not yet seen again, at most: standard ones merge.
static __thread volatile int waiting;

// Runs of handlers since the last place where they were put in order.
struct run {
    int number, which, code, value;
};
static __thread struct run run_list[16384];
static __thread volatile int run_count;
static void put_in_order(void) {
    int count = run_count;
    for (int number = 0; number < NUMBERS; number++)
        for (int i = 0; i < count; i++)
            if (run_list[i].number == numbers[number])
                note("handler", run_list[i].number * 10 + run_list[i].which, run_list[i].code, run_list[i].value);
    note("handlers", count, 0, 0);
    run_count = 0;
}
static void remember(int number, int which, const siginfo_t *information) {
    if (own_depth) note("inside", number, which, 0);
    waiting = waiting - 1;
    run_list[run_count] = (struct run){number, which, information->si_code, information->si_value.sival_int};
    run_count = run_count + 1;
}
static void first_handler(int number, siginfo_t *information, void *context) {
    (void)context;
    remember(number, 1, information);
}
static void second_handler(int number, siginfo_t *information, void *context) {
    (void)context;
    remember(number, 2, information);
}
static void set_action(int which, int number) {
    struct sigaction action = {.sa_sigaction = which ? second_handler : first_handler}, old;
    action.sa_flags = SA_SIGINFO | (which ? SA_RESTART : 0);
    // All of them, so that one runs after the other.
    for (int i = 0; i < NUMBERS; i++) sigaddset(&action.sa_mask, numbers[i]);
    sigaction(number, &action, &old);
    note("action", number, old.sa_sigaction == second_handler, old.sa_flags);
}

static sigset_t some(void) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < NUMBERS; i++)
        if (chosen(3) == 0) sigaddset(&set, numbers[i]);
    return set;
}
static long members(const sigset_t *set) {
    long bits = 0;
    for (int i = 0; i < NUMBERS; i++) bits |= (long)(sigismember(set, numbers[i]) == 1) << i;
    return bits;
}
static __thread int counter;
static void send_one(void) {
    int number = numbers[chosen(NUMBERS)];
    counter++;
    waiting = waiting + 1;
    note("send", number, counter, 0);
    if (number < 32 && chosen(2)) {
        pthread_kill(pthread_self(), number);
        return;
    }
    union sigval value = {.sival_int = counter};
    pthread_sigqueue(pthread_self(), number, value);
}
static void child(void) {
    fflush(stderr);
    pid_t forked = fork();
    if (forked == 0) {
        sigset_t pending;
        run_count = 0;
        sigpending(&pending);
        sigset_t none;
        sigemptyset(&none);
        change_mask(SIG_SETMASK, &none, 0);
        while (own_depth) close_section();
        int before = run_count;
        pthread_kill(pthread_self(), numbers[0]);
        _exit((before != 0) + 2 * (run_count - before != 1) + 4 * (members(&pending) != 0));
    }
    int status = 0;
    while (waitpid(forked, &status, 0) != forked) {}
    note("child", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), 0, 0);
}
static void vforked(void) {
    pid_t forked = vfork();
    if (forked == 0) _exit(3);
    int status = 0;
    while (waitpid(forked, &status, 0) != forked) {}
    note("vfork child", status, 0, 0);
}
static void *thread_body(void *unused) {
    return unused;
}
static void threaded(void) {
    pthread_t thread;
    if (pthread_create(&thread, 0, thread_body, 0) || pthread_join(thread, 0)) _exit(96);
    note("thread", 0, 0, 0);
}
static void step(int level);
static void inside_callback(void *level) {
    // Our loader's section is open here; under ld-linux it is made.
    own_depth++;
    if (!sigblock_word) lay();
    for (unsigned i = chosen(6); i > 0; i--) step(*(int *)level);
    // Steps may have left their own sections open: not over the end of a callback.
    own_depth--;
}
static void callback_step(int level) {
    unsigned before = own_depth;
    int next = level + 1;
    in_callback(inside_callback, &next);
    if (own_depth != before) _exit(95);
    if (!sigblock_word) lay();
}
static void step(int level) {
    sigset_t set, old;
    siginfo_t information;
    struct timespec now = {0, 0};
    switch (chosen(level ? 13 : 16)) {
    case 0: case 1: case 2: case 3: send_one(); break;
    case 4: set = some(); change_mask(SIG_BLOCK, &set, &old); note("block", members(&set), members(&old), 0); break;
    case 5: case 6: set = some(); change_mask(SIG_UNBLOCK, &set, &old); note("unblock", members(&set), members(&old), 0); break;
    case 7: set = some(); change_mask(SIG_SETMASK, &set, &old); note("setmask", members(&set), members(&old), 0); break;
    case 8: change_mask(SIG_BLOCK, 0, &old); note("mask", members(&old), 0, 0); break;
    case 9: sigpending(&set); note("pending", members(&set), 0, 0); break;
    case 10:
        // What it may take must be blocked, by the program or by the section. In a callback it would end the section.
        set = some();
        if (with_waits && own_depth && level == 0) {
            int got = sigtimedwait(&set, &information, &now);
            note("wait", members(&set), got, got > 0 ? information.si_value.sival_int * 100L + information.si_code : 0);
        }
        break;
    case 11: set_action((int)chosen(2), numbers[chosen(NUMBERS)]); break;
    case 12: if (level < 3) callback_step(level); break;
    case 13: if (own_depth < 4) open_section(); break;
    case 14: if (own_depth) close_section(); break;
    case 15:
        // User mode has room for 64 signals of a thread that makes another in its section.
        if (waiting > 50) break;
        switch (chosen(12)) {
        case 0: child(); break;
        case 1: vforked(); break;
        case 2: threaded(); break;
        }
        break;
    }
    if (own_depth == 0) {
        put_in_order();
        sigpending(&set);
        if (!members(&set)) waiting = 0;
    }
}

// TRACE_ROUND=N in the environment: that round alone, each step on standard error. Tells each round's hash, or gives
// all in one.
static uint64_t rounds(unsigned first, bool tell) {
    uint64_t all = 0;
    trace = getenv("TRACE_ROUND") != 0;
    unsigned only = trace ? (unsigned)atoi(getenv("TRACE_ROUND")) : 0;
    for (unsigned round = first; round < first + ROUNDS; round++) {
        if (trace && round != only) continue;
        random_state = round * 7919u + 1;
        hash = 14695981039346656037u;
        sigset_t none;
        sigemptyset(&none);
        own_mask = none;
        waiting = 0;
        for (int i = 0; i < NUMBERS; i++) set_action(0, numbers[i]);
        for (int i = 0, steps = times(STEPS); i < steps; i++) step(0);
        while (own_depth) close_section();
        change_mask(SIG_SETMASK, &none, 0);
        put_in_order();
        if (tell) say("%u:%08x ", round, (unsigned)(hash ^ hash >> 32));
        all = all * 1099511628211u + hash;
    }
    return all;
}
static void main_thread(unsigned first) {
    numbers[0] = SIGUSR1;
    numbers[1] = SIGUSR2;
    for (int i = 2; i < NUMBERS; i++) numbers[i] = SIGRTMIN + i;
    rounds(first, true);
}
// Each with numbers of its own, as actions are the process's.
static void *one_of_four(void *which) {
    static const int standard[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGHUP};
    uint64_t *place = which;
    unsigned index = (unsigned)*place;
    numbers[0] = standard[index];
    for (int i = 1; i < NUMBERS; i++) numbers[i] = SIGRTMIN + 1 + (int)index * (NUMBERS - 1) + i - 1;
    *place = rounds(1000 * (index + 1), false);
    return 0;
}
static void four_threads(void) {
    pthread_t threads[4];
    uint64_t places[4];
    for (uint64_t i = 0; i < 4; i++) {
        places[i] = i;
        if (pthread_create(&threads[i], 0, one_of_four, &places[i])) give_up("a thread");
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], 0);
        say("%016lx ", places[i]);
    }
}
static void rounds_0(void) { main_thread(0); }
static void rounds_40(void) { main_thread(ROUNDS); }
static void rounds_80(void) { main_thread(2 * ROUNDS); }
static void rounds_120(void) { main_thread(3 * ROUNDS); }
static void rounds_160(void) {
    with_waits = true;
    main_thread(4 * ROUNDS);
}

static const struct test_case cases[] = {
    {"rounds 0 to 39", rounds_0, "=", 0, 0},
    {"rounds 40 to 79", rounds_40, "=", 0, 0},
    {"rounds 80 to 119", rounds_80, "=", 0, 0},
    {"rounds 120 to 159", rounds_120, "=", 0, 0},
    {"four threads at once", four_threads, "=", 0, 0},
    {"rounds 160 to 199, with sigtimedwait", rounds_160, "=", 0, 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
