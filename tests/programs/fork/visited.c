// Children that are made while another thread runs a callback of dl_iterate_phdr: they iterate, alone and in a thread of their
// own. And a program that forks while handlers of its own use the loader.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int inside, go_on;
static int stays(struct dl_phdr_info *information, size_t size, void *unused) {
    (void)information, (void)size, (void)unused;
    inside = 1;
    while (!go_on) usleep(1000);
    return 1;
}
static int counts(struct dl_phdr_info *information, size_t size, void *number) {
    (void)information, (void)size;
    ++*(int *)number;
    return 0;
}
static void *holds(void *unused) {
    dl_iterate_phdr(stays, unused);
    return unused;
}
static void *iterates(void *unused) {
    int number = 0;
    (void)unused;
    dl_iterate_phdr(counts, &number);
    return (void *)(long)(number > 2);
}
static pid_t with_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }
// From 2.34 on.
extern pid_t _Fork(void) __attribute__((weak));
static pid_t with_fork(void) { return _Fork ? _Fork() : with_clone(); }

static void children(const char *name, pid_t (*make)(void)) {
    pthread_t thread, own;
    void *seen = 0;
    int status = 0;
    inside = go_on = 0;
    pthread_create(&thread, 0, holds, 0);
    while (!inside) usleep(1000);
    pid_t child = make();
    if (!child) {
        alarm(10);
        if (!iterates(0)) _exit(1);
        pthread_create(&own, 0, iterates, 0);
        pthread_join(own, &seen);
        _exit(!seen);
    }
    waitpid(child, &status, 0);
    printf("%s %d\n", name, status == 0);
    go_on = 1;
    pthread_join(thread, 0);
}

static volatile int looked, wrong;
static void looks(int number) {
    (void)number;
    looked++;
    wrong |= !dlsym(RTLD_DEFAULT, "getpid") || !iterates(0) || dlopen("./no such file", RTLD_NOW) != 0;
}
// A timer of 5 kHz whose handler uses the loader, until it has run 2,000 times: in the middle of forks too, where the loader's locks
// are kept.
static void handlers(void) {
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    int bad = 0, forks = 0;
    signal(SIGALRM, looks);
    setitimer(ITIMER_REAL, &often, 0);
    while (looked < 2000) {
        int status = 0;
        pid_t child = fork();
        if (!child) _exit(wrong);
        while (waitpid(child, &status, 0) < 0) continue;
        bad |= child < 0 || status;
        forks++;
    }
    setitimer(ITIMER_REAL, &never, 0);
    printf("handlers %d\n", !bad && !wrong && forks > 10);
}

int main(void) {
    setvbuf(stdout, 0, _IOLBF, 0);
    children("fork", fork);
    children("_Fork", with_fork);
    children("clone", with_clone);
    handlers();
}
