// The sender of the storm: a process that does nothing but send, and dies with the receivers' process. Bursts at a given rate;
// after each burst everything must have arrived, and then one plain signal of each kind must be answered exactly once.
#include "storm.h"
#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>

// Queued signals to one receiver that may be on their way; plain ones merge.
enum { AHEAD = 64 };
static const double BURST = 0.8;

static int queue(pid_t process, pid_t thread, int number, uint64_t value) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = number;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_value.sival_ptr = (void *)(uintptr_t)value;
    long result = thread ? syscall(SYS_rt_tgsigqueueinfo, process, thread, number, &info)
                         : syscall(SYS_rt_sigqueueinfo, process, number, &info);
    return result == 0;
}

static uint64_t any_got(struct storm *storm, int i) {
    uint64_t sum = 0;
    for (int t = 0; t < THREADS; t++) sum += storm->receivers[t].queued_any[i];
    return sum;
}
static uint64_t plain_any_got(struct storm *storm, int i) {
    uint64_t sum = 0;
    for (int t = 0; t < THREADS; t++) sum += storm->receivers[t].plain_any[i];
    return sum;
}

// One signal more of some kind; 0 if this kind must wait.
static int send_one(struct storm *storm, pid_t target, unsigned turn) {
    int t = (int)(turn % (THREADS + 2)), i = (int)(turn / (THREADS + 2));
    if (t == THREADS) {
        i %= QUEUED_ANY;
        if (storm->queued_any[i] - any_got(storm, i) >= AHEAD) return 0;
        if (!queue(target, 0, queued_any(i), storm->queued_any[i] + 1)) return bump(&storm->refused), 0;
        bump(&storm->queued_any[i]);
    } else if (t > THREADS) {
        i %= PLAIN_ANY;
        // Counted first: a run may be seen before kill returns.
        bump(&storm->plain_any[i]);
        kill(target, plain_any(i));
    } else if (i % 2) {
        i = i / 2 % PLAIN;
        bump(&storm->plain[t][i]);
        syscall(SYS_tgkill, target, storm->receivers[t].tid, plain(i));
    } else {
        i = i / 2 % QUEUED;
        if (storm->queued[t][i] - storm->receivers[t].queued[i] >= AHEAD) return 0;
        if (!queue(target, storm->receivers[t].tid, queued(i), storm->queued[t][i] + 1)) return bump(&storm->refused), 0;
        bump(&storm->queued[t][i]);
    }
    return 1;
}

static void burst(struct storm *storm, pid_t target, unsigned *turn) {
    double start = now(), sent = 0;
    for (double gone = 0; gone < BURST; gone = now() - start) {
        for (int tries = 0; sent < gone * storm->rate && tries < 1000; tries++) sent += send_one(storm, target, (*turn)++);
        nap(100e-6);
    }
}

// Whether the kernel still has a signal for this thread or for the process (proc(5), SigPnd and ShdPnd).
static int pending(pid_t target, pid_t thread) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", target, thread);
    FILE *file = fopen(path, "re");
    if (!file) return 1;
    unsigned long long bits = 0, one;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "SigPnd: %llx", &one) == 1 || sscanf(line, "ShdPnd: %llx", &one) == 1) bits |= one;
    fclose(file);
    return bits != 0;
}

static int all_queued_arrived(struct storm *storm) {
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < QUEUED; i++)
            if (storm->queued[t][i] != storm->receivers[t].queued[i]) return 0;
    for (int i = 0; i < QUEUED_ANY; i++)
        if (storm->queued_any[i] != any_got(storm, i)) return 0;
    return 1;
}

// Waits until nothing is on its way: the kernel has no signal, and each thread has since then ended a section, at whose end a
// held one would have been handled (two: the first counted may be one that had ended before). 0: something stays away.
static int settled(struct storm *storm, pid_t target) {
    double end = now() + STALL;
    uint64_t before[THREADS];
    for (int t = 0; t < THREADS; t++)
        for (; pending(target, storm->receivers[t].tid); nap(200e-6))
            if (now() > end) return 0;
    for (int t = 0; t < THREADS; t++) before[t] = storm->receivers[t].sections;
    for (int t = 0; t < THREADS; t++)
        for (; storm->receivers[t].sections < before[t] + 2; nap(200e-6))
            if (now() > end) return 0;
    for (; !all_queued_arrived(storm); nap(200e-6))
        if (now() > end) return 0;
    return 1;
}

static void answered(struct storm *storm, uint64_t runs) {
    if (runs == 0) bump(&storm->unanswered);
    if (runs > 1) bump(&storm->doubled);
}

static int closing(struct storm *storm, pid_t target) {
    if (!settled(storm, target)) return 0;
    uint64_t before[THREADS][PLAIN], before_any[PLAIN_ANY];
    for (int i = 0; i < PLAIN_ANY; i++) before_any[i] = plain_any_got(storm, i);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < PLAIN; i++) before[t][i] = storm->receivers[t].plain[i];
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < PLAIN; i++) {
            bump(&storm->plain[t][i]);
            syscall(SYS_tgkill, target, storm->receivers[t].tid, plain(i));
        }
    for (int i = 0; i < PLAIN_ANY; i++) {
        bump(&storm->plain_any[i]);
        kill(target, plain_any(i));
    }
    if (!settled(storm, target)) return 0;
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < PLAIN; i++) answered(storm, storm->receivers[t].plain[i] - before[t][i]);
    for (int i = 0; i < PLAIN_ANY; i++) answered(storm, plain_any_got(storm, i) - before_any[i]);
    bump(&storm->closings);
    return 1;
}

void send_signals(struct storm *storm, pid_t target) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != target) _exit(1);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    // Helps against eight busy threads; without the privilege the rate only varies more.
    setpriority(PRIO_PROCESS, 0, -10);
    unsigned turn = 0;
    while (!storm->stop) {
        burst(storm, target, &turn);
        if (!closing(storm, target)) {
            bump(&storm->stalled);
            break;
        }
    }
    _exit(0);
}
