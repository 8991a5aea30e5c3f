// churn SECONDS [THREADS RUNS HELD]: threads that live for a few hundred sections and end, under signals sent to the process by
// another process. What a thread took must run in it or reach another one. Lasts until so many threads have ended, handlers run and
// signals been held. Prints counts as one line of KEY=VALUE.
#include "api.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { MAKERS = 2, AT_ONCE = 3, LONGEST = 3000, NUMBERS = 3, BATCH = 5 };

// Written by the sender, but for `stop`.
struct sent { volatile uint64_t count, refused; volatile int stop; };

static volatile int quit;
static uint64_t runs, inside, threads;
static __thread volatile int depth;

static void add(uint64_t *counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

static void handler(int number) {
    (void)number;
    if (depth) add(&inside);
    add(&runs);
}

static void *live(void *sections) {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    for (long left = (long)sections; left > 0; left--) {
        sigblock_enter();
        depth = 1;
        sigblock_enter();
        for (volatile int work = 0; work < 20; work++) continue;
        sigblock_leave();
        depth = 0;
        sigblock_leave();
    }
    add(&threads);
    return NULL;
}

static void *make_threads(void *seed) {
    unsigned state = (unsigned)(uintptr_t)seed;
    pthread_t made[AT_ONCE];
    while (!quit) {
        for (int i = 0; i < AT_ONCE; i++)
            if (pthread_create(&made[i], NULL, live, (void *)(long)(rand_r(&state) % LONGEST))) _exit(2);
        for (int i = 0; i < AT_ONCE; i++) pthread_join(made[i], NULL);
    }
    return NULL;
}

static void send_signals(struct sent *sent, pid_t target) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != target) _exit(1);
    while (!sent->stop) {
        for (int i = 0; i < BATCH; i++) {
            union sigval value = {.sival_int = 0};
            if (sigqueue(target, SIGRTMIN + 4 + (int)(sent->count % NUMBERS), value)) bump(&sent->refused);
            else bump(&sent->count);
        }
        nap(100e-6);
    }
    _exit(0);
}

// Whether there was as much of everything as is wanted.
static int is_enough(char *const *wanted, int count) {
    struct sigblock_counts counts = {0, 0};
    sigblock_counts(&counts);
    uint64_t have[] = {threads, runs, counts.held};
    for (int i = 0; i < count; i++)
        if (have[i] < strtoull(wanted[i], NULL, 10)) return 0;
    return 1;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    if (argc > 5) return 2;
    need_sigblock();
    struct sent *sent = mmap(NULL, sizeof *sent, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sent == MAP_FAILED) return perror("mmap"), 2;
    struct sigaction action = {.sa_handler = handler};
    for (int i = 0; i < NUMBERS; i++)
        if (sigaction(SIGRTMIN + 4 + i, &action, NULL)) return perror("sigaction"), 2;
    // This thread and the makers take no signal.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    pthread_t makers[MAKERS], last;
    for (long i = 0; i < MAKERS; i++)
        if (pthread_create(&makers[i], NULL, make_threads, (void *)(i + 1))) return perror("pthread_create"), 2;
    pid_t self = getpid(), sender = fork();
    if (sender < 0) return perror("fork"), 2;
    if (sender == 0) send_signals(sent, self);
    nap(seconds);
    while (!is_enough(argv + 2, argc - 2)) nap(10e-3);
    sent->stop = 1;
    int status = 1;
    waitpid(sender, &status, 0);
    quit = 1;
    for (int i = 0; i < MAKERS; i++) pthread_join(makers[i], NULL);
    // Whatever the kernel still has, this one gets.
    if (pthread_create(&last, NULL, live, (void *)1L)) return perror("pthread_create"), 2;
    pthread_join(last, NULL);
    struct sigblock_counts counts = {0, 0};
    sigblock_counts(&counts);
    printf("backend=%s threads=%lu sent=%lu refused=%lu runs=%lu held=%lu inside=%lu lost=%ld\n", sigblock_backend(), threads,
           sent->count, sent->refused, runs, counts.held, inside, (long)(sent->count - runs));
    return status != 0;
}
