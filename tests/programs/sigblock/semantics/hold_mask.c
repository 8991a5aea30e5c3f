// Which signals a section holds, as set by LD_SIGBLOCK_MASK and by sigblock_mask(). Each case tells the numbers whose
// handlers do not run inside. ld-linux has neither: there the sections made by hand hold the default.
#define _GNU_SOURCE
#include "cases.h"

static volatile int last;
static void note_number(int number) { last = number; }
// Every number with a handler, one by one: is it held?
static void tell_held(void) {
    int from = 0;
    say("{");
    for (int number = 1; number <= SIGRTMAX + 1; number++) {
        int is_held = 0;
        if (number <= SIGRTMAX && number != SIGKILL && number != SIGSTOP && number != 32 && number != 33) {
            signal(number, note_number);
            last = 0;
            enter();
            raise(number);
            is_held = last == 0;
            leave();
            if (last != number) say(" %d is lost", number);
        }
        if (is_held && !from) from = number;
        if (!is_held && from) {
            if (from == number - 1) say(" %d", from);
            else say(" %d-%d", from, number - 1);
            from = 0;
        }
    }
    say(" }");
}
static void tell_set(const sigset_t *set) {
    int from = 0;
    say(" old {");
    for (int number = 1; number <= SIGRTMAX + 1; number++) {
        int is_held = number <= SIGRTMAX && (((const unsigned long *)set)[0] >> (number - 1) & 1);
        if (is_held && !from) from = number;
        if (!is_held && from) {
            if (from == number - 1) say(" %d", from);
            else say(" %d-%d", from, number - 1);
            from = 0;
        }
    }
    say(" } ");
}
static void as_started(void) { tell_held(); }
static void change(const sigset_t *hold) {
    sigset_t old;
    memset(&old, 0xa5, sizeof old);
    if (!sigblock_mask) {
        say("no sigblock_mask ");
        return;
    }
    errno = 0;
    say("%d", sigblock_mask(hold, &old));
    tell_set(&old);
}
static void changed(void) {
    sigset_t hold;
    sigemptyset(&hold);
    sigaddset(&hold, SIGUSR1);
    sigaddset(&hold, SIGRTMIN + 3);
    change(&hold);
    tell_held();
    sigemptyset(&hold);
    change(&hold);
    tell_held();
    // Everything: what is never held is not.
    memset(&hold, 0xff, sizeof hold);
    change(&hold);
    tell_held();
    change(0);
}
static void *other_thread(void *unused) {
    tell_held();
    return unused;
}
static void for_all_threads(void) {
    pthread_t thread;
    sigset_t hold;
    sigemptyset(&hold);
    sigaddset(&hold, SIGTERM);
    change(&hold);
    if (pthread_create(&thread, 0, other_thread, 0) || pthread_join(thread, 0)) give_up("a thread");
    pid_t child = fork();
    if (child == 0) {
        tell_held();
        _exit(0);
    }
    await(child);
}
static void in_a_callback(void *unused) {
    (void)unused;
    signal(SIGUSR1, count_run);
    signal(SIGUSR2, count_run);
    kill(getpid(), SIGUSR1);
    say("%d", (int)runs);
    kill(getpid(), SIGUSR2);
    say(" %d", (int)runs);
}
static void loaders_sections(void) {
    in_callback(in_a_callback, 0);
    say(" %d", (int)runs);
}

int main(int argc, char **argv) {
    const char *setting = getenv("LD_SIGBLOCK_MASK"), *expected = getenv("EXPECTED_HELD");
    static struct test_case cases[] = {
        {"held as started", as_started, "{ 1-3 10 12-18 20-30 34-64 }", 0, 0},
        {"the loader's own sections", loaders_sections, "1 2 2", "0 0 2", "0 0 2"},
        {"sigblock_mask", changed, "=", 0, 0},
        {"sigblock_mask is the process's", for_all_threads, "=", 0, 0},
    };
    static char text[256], other[256];
    const char *started = expected ? expected : "{ 1-3 10 12-18 20-30 34-64 }";
    cases[0].user = cases[0].sigprocmask = started;
    // The default holds both; these tests' settings hold USR1 only.
    if (setting && strcmp(setting, "all")) cases[1].user = cases[1].sigprocmask = "0 1 2";
    snprintf(text, sizeof text, "0 old %s { 10 37 }0 old { 10 37 } { }0 old { } { 1-3 10 12-18 20-30 34-64 }0 old { 1-3 10 12-18 20-30 34-64 } ", started);
    cases[2].user = cases[2].sigprocmask = text;
    snprintf(other, sizeof other, "0 old %s { 15 }{ 15 }", started);
    cases[3].user = cases[3].sigprocmask = other;
    return RUN_CASES(cases);
}
