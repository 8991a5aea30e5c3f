// A tour of what glibc does with threads and processes without loading anything at run time: thread-local storage, keys and
// their destructors, errno, stacks, mutexes, signals, fork in a threaded program, system, popen, setuid. Thread
// cancellation is left out: glibc loads libgcc_s for it. Prints one line a subject; exit 0 if all is right.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 3 };

static __thread long counter = 5;
static __thread char large[3000];
static pthread_key_t key;
static int destroyed;
static volatile sig_atomic_t signals;

static void destroy(void *value) {
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
    free(value);
}

static void *work(void *argument) {
    long number = (long)argument;
    for (size_t i = 0; i < sizeof large; i++)
        if (large[i] != 0) abort(); // a reused stack must show zeros again
    counter += number;
    pthread_setspecific(key, malloc(10));
    memset(large, 1, sizeof large);
    errno = (int)number;
    for (size_t i = 0; i < 1000; i++) free(malloc(i * 37));
    sched_yield();
    if (errno != number) abort();
    return (void *)counter;
}

static void count(int signal) {
    (void)signal;
    signals++;
}

int main(void) {
    int right = 1;
    pthread_key_create(&key, destroy);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (long i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, work, (void *)i)) abort();
        for (long i = 0; i < THREADS; i++) {
            void *value;
            pthread_join(threads[i], &value);
            right &= (long)value == 5 + i;
        }
    }
    printf("threads %d destroyed %d main's counter %ld\n", right, destroyed, counter);

    pthread_attr_t attributes;
    void *stack;
    size_t size;
    char here;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack, &size);
    printf("main's stack holds its variables %d\n", &here > (char *)stack && &here < (char *)stack + size);

    pthread_mutexattr_t robust;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &robust);
    int locked = pthread_mutex_lock(&mutex), unlocked = pthread_mutex_unlock(&mutex);
    printf("robust mutex %d %d\n", locked, unlocked);

    signal(SIGUSR1, count);
    raise(SIGUSR1);
    pthread_kill(pthread_self(), SIGUSR1);
    printf("signals %d\n", (int)signals);

    fflush(stdout);
    int status;
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        void *value;
        if (pthread_create(&thread, NULL, work, (void *)2)) _exit(99);
        pthread_join(thread, &value);
        _exit((int)(long)value);
    }
    waitpid(child, &status, 0);
    printf("thread in a forked child %d\n", WEXITSTATUS(status));

    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("clocks (vDSO) %d processor known %d\n", time(NULL) > 1000000 && now.tv_sec >= 0, sched_getcpu() >= 0);
    printf("page %ld ticks %ld stack for signals %ld\n", sysconf(_SC_PAGESIZE), sysconf(_SC_CLK_TCK), sysconf(_SC_MINSIGSTKSZ));

    fflush(stdout);
    printf("system %d\n", WEXITSTATUS(system("exit 3")));
    char line[64] = "";
    FILE *pipe = popen("echo popen", "r");
    if (!fgets(line, sizeof line, pipe)) abort();
    printf("%s%d\n", line, pclose(pipe));
    printf("setuid in all threads %d\n", setuid(getuid()));
    return !right;
}
