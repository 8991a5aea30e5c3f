// What the programs of `cargo xtask bench sigblock` share: a clock for each phase, one line of figures a phase, and the back end
// as the loader itself tells it. No program needs the loader's interface to be there: under ld-linux it is not.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif
void sigblock_enter(void) __attribute__((weak));
void sigblock_leave(void) __attribute__((weak));
const char *sigblock_backend(void) __attribute__((weak));
#ifdef __cplusplus
}
#endif

struct phase {
    struct rusage usage;
    struct timespec processor;
};

static inline double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

static inline struct phase phase_start(void) {
    struct phase start;
    getrusage(RUSAGE_SELF, &start.usage);
    // Processor time, not time of day: what the machine gives to others in between is no cost of ours.
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start.processor);
    return start;
}

// "phase NAME COUNT PROCESSOR USER SYSTEM", times of all COUNT operations in nanoseconds. User and system time are what the
// kernel accounts, often by sampling at its tick: sums over many runs are meaningful, single values are not.
static inline void phase_end(struct phase start, const char *name, long count) {
    struct timespec processor;
    struct rusage usage;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &processor);
    getrusage(RUSAGE_SELF, &usage);
    double nanoseconds = (double)(processor.tv_sec - start.processor.tv_sec) * 1e9 +
                         (double)(processor.tv_nsec - start.processor.tv_nsec);
    double user = seconds(usage.ru_utime) - seconds(start.usage.ru_utime);
    double system = seconds(usage.ru_stime) - seconds(start.usage.ru_stime);
    printf("phase %s %ld %.0f %.0f %.0f\n", name, count, nanoseconds, user * 1e9, system * 1e9);
}

// "backend NAME"; "none" where the loader has no sections.
static inline void print_backend(void) { printf("backend %s\n", sigblock_backend ? sigblock_backend() : "none"); }

static inline long count_argument(int count, char **arguments) {
    long value = count > 1 ? atol(arguments[1]) : 0;
    if (value > 0) return value;
    fprintf(stderr, "usage: %s COUNT\n", arguments[0]);
    exit(2);
}
