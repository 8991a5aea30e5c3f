// What an implementation of the protocol must keep (FreeBSD's rules, ../shared/reference/freebsd-rtld.md 1.12), a
// case for each rule that no other program of these has.
#define _GNU_SOURCE
#include "asleep.h"
#include <dlfcn.h>
#include <sys/stat.h>

static int objects(struct dl_phdr_info *object, size_t size, void *number) {
    (void)object;
    (void)size;
    ++*(int *)number;
    return 0;
}
static volatile int raised;
static void looks_at_word(int number) {
    (void)number;
    runs++;
    raised += depth() != 0;
}
static void start_timer(void (*handler)(int), int flags, long nanoseconds) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2};
    struct itimerspec often = {{0, nanoseconds}, {0, nanoseconds}};
    timer_t timer;
    sigaction(SIGRTMIN + 2, &action, 0);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, 0)) give_up("timer_create");
}
// 1: raised before the first access, lowered after the last: no handler ever sees the word raised, or comes upon the
// loader half-way.
static void no_handler_inside(void) {
    int wrong = 0, rounds = 0;
    start_timer(looks_at_word, 0, 300000);
    for (; runs < 300; rounds++) {
        int number = 0;
        Dl_info found;
        void *handle = dlopen("./libplugin.so", RTLD_NOW);
        wrong += !handle || !dlsym(handle, "plugin_value") || dlsym(handle, "nosuch") || !dladdr(seen, &found);
        dl_iterate_phdr(objects, &number);
        wrong += number < 3 || dlclose(handle);
    }
    say("runs %s, inside %d, wrong %d, %s", runs >= 300 ? "enough" : "too few", (int)raised, wrong, rounds ? "rounds" : "no round");
}
// A handler that uses the loader itself, upon a main line that does.
static volatile int handler_wrong;
static void uses_loader(int number) {
    int objects_seen = 0;
    Dl_info found;
    (void)number;
    runs++;
    dl_iterate_phdr(objects, &objects_seen);
    handler_wrong += objects_seen < 3 || !dladdr(seen, &found) || !dlsym(RTLD_DEFAULT, "printf");
}
static void handler_uses_loader(void) {
    int wrong = 0;
    // Under ld-linux 2.36 this hangs.
    if (!sigblock_word) {
        say("wrong 0 0");
        return;
    }
    start_timer(uses_loader, 0, 1000000);
    while (runs < 100) {
        int number = 0;
        dl_iterate_phdr(objects, &number);
        wrong += number < 3 || !dlsym(RTLD_DEFAULT, "printf");
    }
    say("wrong %d %d", wrong, (int)handler_wrong);
}
// 2: PEND and a count above one is not the end; a count of one without PEND asks nobody.
static void exact_value(void) {
    on(SIGUSR1, 0);
    if (!sigblock_word) {
        say("no word");
        return;
    }
    enter();
    say("%x", *sigblock_word());
    enter();
    kill(getpid(), SIGUSR1);
    say(" %x", *sigblock_word() & ~1u);
    leave();
    say(" %x runs %d", *sigblock_word() & ~1u, (int)runs);
    enter();
    leave();
    say(" %x runs %d", *sigblock_word() & ~1u, (int)runs);
    leave();
    say(" %x runs %d", *sigblock_word(), (int)runs);
}
// 4: a call of the loader's own that a signal interrupts is made again. A named pipe blocks who opens it until
// somebody writes.
static void interrupted_open(void) {
    const char *const name = "./blocking.so";
    pid_t opener = getpid();
    on(SIGUSR1, 0);
    unlink(name);
    if (mkfifo(name, 0600)) give_up("mkfifo");
    pid_t child = fork();
    if (child == 0) {
        until_asleep(opener, SYS_openat, -1);
        kill(opener, SIGUSR1);
        // Its call must be interrupted by the signal before it could end by this. ld-linux gives up: then nobody
        // opens it for reading.
        sleep_milliseconds(100);
        for (int i = 0; i < 200; i++) {
            int file = open(name, O_WRONLY | O_NONBLOCK);
            if (i >= 20 && file >= 0) _exit(write(file, "x", 1) != 1);
            if (file >= 0) close(file);
            sleep_milliseconds(2);
        }
        _exit(0);
    }
    void *handle = dlopen(name, RTLD_NOW);
    const char *text = handle ? "opened" : dlerror();
    say("%s, runs %d", strstr(text, "Interrupted") ? "interrupted" : strstr(text, "./blocking.so: ") ? "told of the file" : text, (int)runs);
    kill(child, SIGKILL);
    await(child);
    unlink(name);
}
static void interrupted_often(void) {
    int failed = 0;
    start_timer(count_run, 0, 200000);
    while (runs < 300) {
        void *handle = dlopen("./libplugin.so", RTLD_NOW);
        failed += !handle || dlclose(handle);
    }
    say("failed %d", failed);
}
// 5: the loader makes no fault that somebody would have to catch.
static void no_faults(void) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    int number = 0, found = 0;
    Dl_info information;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) signal(faults[i], count_run);
    for (uintptr_t at = 1; at; at <<= 1) found += dladdr((void *)at, &information) != 0;
    dl_iterate_phdr(objects, &number);
    dlclose(dlopen("./libplugin.so", RTLD_NOW));
    dlopen("/proc/self/status", RTLD_NOW);
    dlopen("/etc/passwd", RTLD_NOW);
    dlsym(RTLD_DEFAULT, "nosuch");
    say("found %d, faults %d", found, (int)runs);
}

// By sigprocmask each end must ask, so that the flag is always there.
#define NESTED " 20 10 runs 0 10 runs 0 0 runs 1"
static const struct test_case cases[] = {
    {"1: no handler runs inside", no_handler_inside, "runs enough, inside 0, wrong 0, rounds", 0, 0},
    {"1: a handler uses the loader", handler_uses_loader, "wrong 0 0", 0, 0},
    {"2: the exact value", exact_value,
     "no word", "10" NESTED, "11" NESTED, "10" NESTED},
    {"4: an open that is interrupted", interrupted_open,
     "interrupted, runs 1", "told of the file, runs 1", "told of the file, runs 1"},
    {"4: opening under a timer", interrupted_often, "failed 0", 0, 0},
    {"5: no faults", no_faults, "found 0, faults 0", 0, 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
