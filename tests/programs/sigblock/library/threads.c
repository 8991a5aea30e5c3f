// threads SECONDS: four threads of tiny.h pass values around while another process sends each of them signals, queued ones
// with a number each, and plain ones. The handlers send what they get to the channel of the thread that they interrupt: a
// handler that interrupts the library would find its own lock taken, and is counted. Prints KEY=VALUE; judges nothing.
#define _GNU_SOURCE
#include "sigblock.h"
#include "tiny.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, QUEUED = 2, LIMIT = 20 };

struct thread {
    struct tiny_channel channel;
    volatile pid_t id;
    volatile uint64_t runs, plain_runs, inside, disordered, refused, passed, mail;
    uint64_t last[QUEUED];
} __attribute__((aligned(128)));

// The sender's side, in shared memory.
struct sender { volatile uint64_t sent[THREADS], plain[THREADS]; volatile int stop; };

static struct thread *threads;
static struct sender *sender;
static volatile int quit;
static __thread struct thread *self;

// What came by a signal has this bit, in a channel.
static const uint64_t MAIL = 1ull << 63;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void nap(long nanoseconds) { nanosleep(&(struct timespec){0, nanoseconds}, NULL); }

// In one instruction: a handler of another number may interrupt this one anywhere.
static void bump(volatile uint64_t *counter) { __asm__ volatile("incq %0" : "+m"(*counter) : : "cc"); }

static void got(int number, siginfo_t *information, void *context) {
    (void)context;
    int saved = errno;
    bump(&self->runs);
    int index = number - SIGRTMIN - 1;
    uint64_t value = (uint64_t)(uintptr_t)information->si_value.sival_ptr;
    if (value <= self->last[index]) bump(&self->disordered);
    self->last[index] = value;
    if (tiny_held) bump(&self->inside);
    else if (!tiny_send(&self->channel, MAIL | value)) bump(&self->refused);
    errno = saved;
}

static void got_plain(int number) {
    (void)number;
    bump(&self->plain_runs);
    if (tiny_held) bump(&self->inside);
}

static void *work(void *argument) {
    self = argument;
    self->id = gettid();
    struct thread *next = &threads[(self - threads + 1) % THREADS];
    uint64_t value;
    for (uint64_t i = 0; !quit; i++) {
        if (i % 4 == 0 && !tiny_send(&next->channel, i)) nap(1000);
        while (tiny_receive(&self->channel, &value)) {
            if (value & MAIL) self->mail++;
            else self->passed++;
        }
        if (i % 64 == 0) tiny_wait(&self->channel);
    }
    return NULL;
}

static void send_signals(pid_t process) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    uint64_t numbers[THREADS][QUEUED] = {0};
    for (unsigned round = 0; !sender->stop; round++) {
        for (int t = 0; t < THREADS; t++) {
            for (int i = 0; i < QUEUED; i++) {
                siginfo_t information = {.si_code = SI_QUEUE, .si_pid = getpid(), .si_uid = getuid()};
                information.si_value.sival_ptr = (void *)(uintptr_t)(numbers[t][i] + 1);
                if (syscall(SYS_rt_tgsigqueueinfo, process, threads[t].id, SIGRTMIN + 1 + i, &information)) continue;
                numbers[t][i]++, sender->sent[t]++;
            }
            if (syscall(SYS_tgkill, process, threads[t].id, SIGUSR1) == 0) sender->plain[t]++;
        }
        nap(200000);
    }
    _exit(0);
}

static uint64_t behind(void) {
    uint64_t missing = 0;
    for (int t = 0; t < THREADS; t++) missing += sender->sent[t] - threads[t].runs;
    return missing;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    int flags = MAP_SHARED | MAP_ANONYMOUS;
    threads = mmap(NULL, sizeof *threads * THREADS, PROT_READ | PROT_WRITE, flags, -1, 0);
    sender = mmap(NULL, sizeof *sender, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (threads == MAP_FAILED || sender == MAP_FAILED) return perror("mmap"), 2;
    struct sigaction action = {.sa_sigaction = got, .sa_flags = SA_RESTART | SA_SIGINFO};
    for (int i = 0; i < QUEUED; i++) sigaction(SIGRTMIN + 1 + i, &action, NULL);
    signal(SIGUSR1, got_plain);
    pthread_t carriers[THREADS];
    for (int t = 0; t < THREADS; t++) {
        if (pthread_create(&carriers[t], NULL, work, &threads[t])) return perror("pthread_create"), 2;
        while (!threads[t].id) nap(1000000);
    }
    pid_t process = getpid(), child = fork();
    if (child == 0) send_signals(process);
    double end = now() + seconds;
    while (now() < end) nap(10000000);
    sender->stop = 1;
    waitpid(child, NULL, 0);
    end = now() + LIMIT;
    while (behind() && now() < end) nap(1000000);
    nap(50000000);
    quit = 1;
    uint64_t sent = 0, runs = 0, plain = 0, inside = 0, disordered = 0, refused = 0, passed = 0, mail = 0;
    for (int t = 0; t < THREADS; t++) {
        pthread_join(carriers[t], NULL);
        struct thread *thread = &threads[t];
        uint64_t value;
        while (tiny_receive(&thread->channel, &value)) mail += value >> 63;
        sent += sender->sent[t], runs += thread->runs, inside += thread->inside, disordered += thread->disordered;
        plain += thread->plain_runs, refused += thread->refused, passed += thread->passed, mail += thread->mail;
    }
    struct sigblock_counts counts;
    sigblock_counts(&counts);
    printf("backend=%s sent=%lu runs=%lu lost=%lu plain=%lu inside=%lu disordered=%lu mail=%lu mail_lost=%ld passed=%lu sections=%lu held=%lu\n",
           sigblock_backend(), sent, runs, sent - runs, plain, inside, disordered, mail, (long)(runs - refused - mail),
           passed, counts.sections, counts.held);
    return 0;
}
