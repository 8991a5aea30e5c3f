// What glibc's threads and processes do in one pass: thread-local storage, keys, errno, allocation, cancellation, stack
// attributes, robust mutexes, signals, fork, system, popen. Exit 0 if all threads returned the right values.
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

__thread int value = 5;
static __thread char large[3000];
static pthread_key_t key;
static int destroyed, cleaned;

static void destroy(void *block) {
    __sync_fetch_and_add(&destroyed, 1);
    free(block);
}
static void clean(void *count) { (*(int *)count)++; }
static void ignore(int number) { (void)number; }

static void *work(void *argument) {
    long number = (long)argument;
    value += (int)number;
    pthread_setspecific(key, malloc(10));
    memset(large, (int)number, sizeof large);
    errno = (int)number;
    for (size_t i = 0; i < 1000; i++) free(malloc(i * 37));
    usleep(1000);
    if (errno != number) abort();
    return (void *)(long)value;
}
static void *sleeps(void *unused) {
    pthread_cleanup_push(clean, &cleaned);
    for (;;) sleep(1);
    pthread_cleanup_pop(0);
    return unused;
}

int main(void) {
    pthread_t threads[4];
    void *result;
    int right = 1;
    pthread_key_create(&key, destroy);
    for (int round = 0; round < 3; round++) {
        for (long i = 0; i < 4; i++)
            if (pthread_create(&threads[i], NULL, work, (void *)i)) abort();
        for (long i = 0; i < 4; i++) {
            pthread_join(threads[i], &result);
            right &= (long)result == 5 + i;
        }
    }
    printf("join ok=%d dtors=%d\n", right, destroyed);
    pthread_create(&threads[0], NULL, sleeps, NULL);
    usleep(10000);
    pthread_cancel(threads[0]);
    pthread_join(threads[0], &result);
    printf("cancel %d cleanup %d\n", result == PTHREAD_CANCELED, cleaned);
    pthread_attr_t attributes;
    void *low;
    size_t size;
    char here;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    printf("stack %d\n", &here > (char *)low && &here < (char *)low + size);
    pthread_mutexattr_t kind;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &kind);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    signal(SIGUSR1, ignore);
    raise(SIGUSR1);
    pthread_kill(pthread_self(), SIGUSR1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pthread_create(&threads[0], NULL, work, (void *)2L);
        pthread_join(threads[0], &result);
        _exit((int)(long)result);
    }
    int status;
    waitpid(child, &status, 0);
    printf("fork child %d\n", WEXITSTATUS(status));
    printf("cpu>=0 %d\n", sched_getcpu() >= 0);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("time %d\n", time(NULL) > 1000000 && now.tv_sec > 0);
    printf("sysconf %ld %ld %d\n", sysconf(_SC_PAGESIZE), sysconf(_SC_CLK_TCK), sysconf(_SC_MINSIGSTKSZ) > 0);
    printf("system %d\n", WEXITSTATUS(system("exit 3")));
    FILE *pipe = popen("echo popen", "r");
    char line[64] = "";
    if (pipe && fgets(line, sizeof line, pipe)) printf("%s", line);
    if (pipe) pclose(pipe);
    if (setuid(getuid())) return 2;
    return !right;
}
