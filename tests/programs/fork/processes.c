// fork, vfork, posix_spawn, system and popen; with the argument `threads` while 4 other threads allocate, bind and open without
// pause. Each child does what a child may: binds functions it has not called yet, opens a library and uses it,
// starts threads, forks.
#define _GNU_SOURCE
#include "../dlfcn/report.h"
#include <math.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static int stop;

// A thread's first use of a module, and an error of its own that it does not read.
static void *used_once(void *value) {
    long first = ((int (*)(void))value)();
    dlsym(RTLD_DEFAULT, "nosuch");
    return (void *)first;
}

static void *busy(void *unused) {
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        free(malloc(100));
        void *handle = must_open("./libbusy.so", RTLD_NOW);
        int (*value)(void) = (int (*)(void))must_find(handle, "value");
        if (value() < 5) abort();
        // An error of this thread's own, and blocks of other threads that come and go.
        if (dlsym(handle, "nosuch") || !strstr(dlerror(), "undefined symbol: nosuch")) abort();
        pthread_t thread;
        if (pthread_create(&thread, NULL, used_once, (void *)value)) abort();
        pthread_join(thread, NULL);
        dlclose(handle);
    }
    return unused;
}

static int status_of(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// In the child of fork: first calls, a library, threads, a symbol, a fork again.
static int child_work(void) {
    if (labs(-4) != 4 || strtol("12", NULL, 10) != 12 || atof("1.5") != 1.5) return 1;
    void *handle = dlopen("./libchild.so", RTLD_NOW);
    if (!handle) return 2;
    int (*value)(void) = (int (*)(void))dlsym(handle, "value");
    if (!value || value() != 5 || value() != 7) return 3;
    // Threads on the stacks that the parent's threads had at the fork.
    pthread_t threads[6];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 6; i++)
            if (pthread_create(&threads[i], NULL, used_once, (void *)value)) return 9;
        for (int i = 0; i < 6; i++) {
            void *first;
            pthread_join(threads[i], &first);
            if ((long)first != 5) return 10;
        }
    }
    if (dlclose(handle)) return 4;
    if (dlsym(RTLD_DEFAULT, "nosuch") || !dlerror()) return 5;
    pid_t again = fork();
    if (again == 0) _exit(dlopen("./libchild.so", RTLD_LAZY) ? 7 : 8);
    return status_of(again) == 7 ? 42 : 6;
}

static int forked(void) {
    pid_t child = fork();
    if (child == 0) _exit(child_work());
    return status_of(child);
}
static int vforked(void) {
    char *const arguments[] = {"sh", "-c", "exit 9", NULL};
    pid_t child = vfork();
    if (child == 0) {
        execve("/bin/sh", arguments, environ);
        _exit(99);
    }
    return status_of(child);
}
static int spawned(void) {
    char *const arguments[] = {"sh", "-c", "exit 11", NULL};
    pid_t child;
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ)) return -1;
    return status_of(child);
}
static int missing(void) {
    char *const arguments[] = {"nosuch", NULL};
    pid_t child;
    return posix_spawnp(&child, "nosuch-program", NULL, NULL, arguments, environ);
}
static int piped(void) {
    char line[64] = "";
    FILE *pipe = popen("echo through the pipe; exit 13", "r");
    if (!pipe || !fgets(line, sizeof line, pipe)) return -1;
    printf("popen %s", line);
    return WEXITSTATUS(pclose(pipe));
}
static int prepared, in_parent, in_child;
static void prepare(void) { prepared++; }
static void parent(void) { in_parent++; }
static void child(void) { in_child++; }
static int handled(void) {
    pthread_atfork(prepare, parent, child);
    pid_t process = fork();
    if (process == 0) _exit(prepared * 4 + in_parent * 2 + in_child);
    int status = status_of(process);
    return status * 10 + in_parent;
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_t threads[4];
    int threaded = count > 1 && !strcmp(arguments[1], "threads"), rounds = threaded ? 100 : 3;
    if (threaded)
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, busy, NULL);
    int right = 0;
    for (int round = 0; round < rounds; round++) {
        int status = forked();
        right += status == 42;
        if (status != 42) printf("fork: %d\n", status);
    }
    printf("fork %d of %d\n", right, rounds);
    printf("vfork %d\n", vforked());
    printf("posix_spawn %d\n", spawned());
    printf("posix_spawn of nothing %d\n", missing());
    printf("system %d\n", WEXITSTATUS(system("exit 3")));
    printf("pclose %d\n", piped());
    printf("handlers %d\n", handled());
    void *handle = must_open("./libchild.so", RTLD_NOW);
    printf("parent %d\n", ((int (*)(void))must_find(handle, "value"))());
    stop = 1;
    if (threaded)
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
