// A table of cases, each run in a child of its own, so that one crash costs one case. Prints for each `name TAB what
// was seen TAB what is expected`, and at the end `end TAB number of cases`; the suite compares. Owns the children:
// one that lasts longer than CASE_SECONDS (20) is killed with everything in its process group and counts as hanging.
#ifndef CASES_H
#define CASES_H
// The sources define _GNU_SOURCE.
#include "section.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// What is expected under ld-linux; "=" means whatever ld-linux gives in the same run. Where a back end is known to
// differ, what it gives instead: for the kernel's, if nothing is said, what the other two agree on.
struct test_case {
    const char *name;
    void (*run)(void);
    const char *expected;
    const char *user;
    const char *sigprocmask;
    const char *kernel;
};

static int report_descriptor = 2;

// Adds to what the case saw; one write, also from a handler or another process.
__attribute__((format(printf, 1, 2), unused)) static void say(const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length > 0 && write(report_descriptor, text, (size_t)length) != length) _exit(90);
}

// Ends the case: something it needs cannot be had.
__attribute__((format(printf, 1, 2), noreturn, unused)) static void give_up(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    say(" cannot run: %s (%s)", text, strerror(errno));
    _exit(91);
}

// A wait status in words.
__attribute__((unused)) static const char *ended(int status) {
    static char text[32];
    if (WIFEXITED(status)) snprintf(text, sizeof text, "exit %d", WEXITSTATUS(status));
    else if (WIFSIGNALED(status)) snprintf(text, sizeof text, "signal %d", WTERMSIG(status));
    else snprintf(text, sizeof text, "stopped %d", WSTOPSIG(status));
    return text;
}

// How a child ended.
__attribute__((unused)) static const char *await(pid_t child) {
    int status = 0;
    pid_t got;
    do got = waitpid(child, &status, 0);
    while (got < 0 && errno == EINTR);
    return got == child ? ended(status) : "no child";
}

// How often something is done: fewer times on a processor that is CASE_SLOWER times slower, which is less of a test.
__attribute__((unused)) static int times(int whole) {
    const char *slower = getenv("CASE_SLOWER");
    int share = slower ? whole / atoi(slower) : whole;
    return share > 0 ? share : 1;
}

__attribute__((unused)) static void sleep_milliseconds(long milliseconds) {
    struct timespec rest = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&rest, &rest) && errno == EINTR) {}
}

static void run_case(const struct test_case *one) {
    static char seen[65536];
    size_t length = 0;
    int ends[2], status = 0, hangs = 0;
    if (pipe2(ends, O_CLOEXEC)) exit(92);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        report_descriptor = ends[1];
        one->run();
        _exit(0);
    }
    setpgid(child, child);
    close(ends[1]);
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += getenv("CASE_SECONDS") ? atoi(getenv("CASE_SECONDS")) : 20;
    for (;;) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        long left = (end.tv_sec - now.tv_sec) * 1000 + (end.tv_nsec - now.tv_nsec) / 1000000;
        struct pollfd wait = {ends[0], POLLIN, 0};
        if (left <= 0 || poll(&wait, 1, (int)left) == 0) {
            hangs = 1;
            break;
        }
        ssize_t got = read(ends[0], seen + length, sizeof seen - 1 - length);
        if (got <= 0) break;
        length += (size_t)got;
    }
    kill(-child, hangs ? SIGKILL : 0);
    waitpid(child, &status, 0);
    // What it left behind.
    kill(-child, SIGKILL);
    close(ends[0]);
    seen[length] = 0;
    for (char *at = seen; *at; at++)
        if (*at == '\n' || *at == '\t') *at = ' ';
    const char *expected = one->expected;
    if (!strcmp(backend(), "user") && one->user) expected = one->user;
    if (!strcmp(backend(), "sigprocmask") && one->sigprocmask) expected = one->sigprocmask;
    if (!strcmp(backend(), "kernel")) {
        int agree = one->user && one->sigprocmask && !strcmp(one->user, one->sigprocmask);
        if (one->kernel) expected = one->kernel;
        else if (agree) expected = one->user;
    }
    printf("%s\t%s", one->name, seen);
    if (hangs) printf(" hangs");
    else if (status) printf(" %s", ended(status));
    printf("\t%s\n", expected);
}

// Runs all cases, or those whose names are arguments.
static int run_cases(const struct test_case *cases, size_t count, int argc, char **argv) {
    int number = 0;
    printf("backend\t%s\t=\n", backend());
    for (size_t i = 0; i < count; i++) {
        int wanted = argc < 2;
        for (int j = 1; j < argc; j++) wanted |= !strcmp(argv[j], cases[i].name);
        if (!wanted) continue;
        run_case(&cases[i]);
        number++;
    }
    printf("end\t%d\t=\n", number);
    return 0;
}

#define RUN_CASES(cases) run_cases(cases, sizeof(cases) / sizeof *(cases), argc, argv)
#endif
