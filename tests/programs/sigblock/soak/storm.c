// storm SECONDS RATE SECTIONS RUNS [enter]: eight threads in nested sections under signals from another process, RATE a second in
// sum, real-time and standard, to a thread and to the process. Lasts SECONDS, and on until SECTIONS and RUNS of handlers are
// reached, however slow the machine. With `enter` the handlers open sections too, interrupt one another, and run on alternate
// stacks. Prints what was counted as one line of KEY=VALUE; judges nothing. Exit 2: could not run.
#include "storm.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

static uint64_t excess(uint64_t more, uint64_t less) { return more > less ? more - less : 0; }

static int reached(const struct storm *storm, uint64_t sections, uint64_t runs) {
    uint64_t entered = 0, handled = 0;
    for (int t = 0; t < THREADS; t++) {
        const struct receiver *r = &storm->receivers[t];
        entered += r->sections;
        for (int i = 0; i < QUEUED; i++) handled += r->queued[i];
        for (int i = 0; i < PLAIN; i++) handled += r->plain[i];
        for (int i = 0; i < QUEUED_ANY; i++) handled += r->queued_any[i];
        for (int i = 0; i < PLAIN_ANY; i++) handled += r->plain_any[i];
    }
    return entered >= sections && handled >= runs;
}

static void print_counts(struct storm *storm, double seconds) {
    uint64_t sections = 0, sent = 0, runs = 0, lost = 0, surplus = 0, own = 0;
    uint64_t inside = 0, raised = 0, torn = 0, disordered = 0, disordered_any = 0, any[QUEUED_ANY] = {0}, plain_any_runs[PLAIN_ANY] = {0};
    for (int t = 0; t < THREADS; t++) {
        struct receiver *r = &storm->receivers[t];
        sections += r->sections, own += r->own_sections;
        inside += r->inside, raised += r->raised, torn += r->torn, disordered += r->disordered;
        disordered_any += r->disordered_any;
        for (int i = 0; i < QUEUED; i++) {
            sent += storm->queued[t][i], runs += r->queued[i];
            lost += excess(storm->queued[t][i], r->queued[i]);
            surplus += excess(r->queued[i], storm->queued[t][i]);
        }
        for (int i = 0; i < PLAIN; i++) {
            sent += storm->plain[t][i], runs += r->plain[i];
            surplus += excess(r->plain[i], storm->plain[t][i]);
        }
        for (int i = 0; i < QUEUED_ANY; i++) any[i] += r->queued_any[i];
        for (int i = 0; i < PLAIN_ANY; i++) plain_any_runs[i] += r->plain_any[i];
    }
    for (int i = 0; i < QUEUED_ANY; i++) {
        sent += storm->queued_any[i], runs += any[i];
        lost += excess(storm->queued_any[i], any[i]);
        surplus += excess(any[i], storm->queued_any[i]);
    }
    for (int i = 0; i < PLAIN_ANY; i++) {
        sent += storm->plain_any[i], runs += plain_any_runs[i];
        surplus += excess(plain_any_runs[i], storm->plain_any[i]);
    }
    struct sigblock_counts counts = {0, 0};
    sigblock_counts(&counts);
    printf("backend=%s threads=%d milliseconds=%.0f sections=%lu handler_sections=%lu sent=%lu refused=%lu runs=%lu rate=%.0f "
           "held=%lu closings=%lu inside=%lu raised=%lu torn=%lu disordered=%lu "
           "disordered_any=%lu lost=%lu surplus=%lu unanswered=%lu doubled=%lu stalled=%lu\n",
           sigblock_backend(), THREADS, seconds * 1e3, sections, own, sent, storm->refused, runs, (double)sent / seconds,
           counts.held, storm->closings, inside, raised, torn, disordered, disordered_any, lost, surplus, storm->unanswered, storm->doubled,
           storm->stalled);
}

int main(int argc, char **argv) {
    double seconds = argc > 4 ? atof(argv[1]) : 0;
    int rate = argc > 4 ? atoi(argv[2]) : 0;
    if (seconds <= 0 || rate <= 0) return fputs("usage: storm SECONDS RATE SECTIONS RUNS [enter]\n", stderr), 2;
    uint64_t least_sections = strtoull(argv[3], NULL, 10), least_runs = strtoull(argv[4], NULL, 10);
    need_sigblock();
    if (word_counts()) {
        int failed = check_raised_word();
        printf("raised_word=%d ", failed);
        if (failed) return puts(""), 1;
    }
    struct storm *storm = mmap(NULL, sizeof *storm, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (storm == MAP_FAILED) return perror("mmap"), 2;
    storm->rate = rate;
    storm->handlers_enter = argc > 5 && !strcmp(argv[5], "enter");
    install_handlers(storm);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        if (pthread_create(&threads[t], NULL, receive, &storm->receivers[t])) return perror("pthread_create"), 2;
        while (!storm->receivers[t].tid) nap(1e-3);
    }
    double start = now();
    pid_t self = getpid(), sender = fork();
    if (sender < 0) return perror("fork"), 2;
    if (sender == 0) send_signals(storm, self);
    int status = 1;
    // The sender ends early only if signals stay away.
    while ((now() - start < seconds || !reached(storm, least_sections, least_runs)) && waitpid(sender, &status, WNOHANG) == 0) nap(10e-3);
    storm->stop = 1;
    waitpid(sender, &status, 0);
    seconds = now() - start;
    receivers_quit = 1;
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += STALL;
    for (int t = 0; t < THREADS; t++)
        if (pthread_timedjoin_np(threads[t], NULL, &limit)) bump(&storm->stalled);
    print_counts(storm, seconds);
    if (status) fprintf(stderr, "the sender ended with %#x\n", status);
    fflush(stdout);
    _exit(status != 0);
}
