// dlclose where a program seldom calls it: in handlers of pthread_atfork, and in functions for exit while other threads
// load and unload. `ending fork` or `ending exit`.
#include "../dlfcn/report.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void *handles[4];
static int loaded(void) { return dlopen("./libchild.so", RTLD_NOW | RTLD_NOLOAD) != NULL; }
static void close_one(int which) {
    if (handles[which] && dlclose(handles[which])) puts(error_text());
    handles[which] = NULL;
}
static void prepare(void) { close_one(0); }
static void parent(void) { close_one(1); }
static void child(void) { close_one(1), close_one(2); }

static void forks(void) {
    for (int i = 0; i < 3; i++) handles[i] = must_open("./libchild.so", RTLD_NOW);
    pthread_atfork(prepare, parent, child);
    fflush(stdout);
    pid_t process = fork();
    if (process == 0) _exit(10 + loaded());
    int status = 0;
    waitpid(process, &status, 0);
    printf("child %d, parent %d\n", WEXITSTATUS(status), loaded());
}

static int rounds[4], is_ending;
static void *loads(void *number) {
    for (char path[] = "./libbusy1.so";;) {
        path[9] = '1' + (long)number;
        void *handle = must_open(path, RTLD_LAZY);
        int value = ((int (*)(void))must_find(handle, "busy_value"))();
        // At exit libraries in use are finalised too, after which they give -1.
        if (value < 40 && !__atomic_load_n(&is_ending, __ATOMIC_ACQUIRE)) abort();
        dlclose(handle);
        __atomic_fetch_add(&rounds[(long)number], 1, __ATOMIC_RELAXED);
    }
    return NULL;
}
static void at_exit(void) {
    close_one(3);
    void *handle = must_open("./libsecond.so", RTLD_NOW);
    int (*value)(void) = (int (*)(void))must_find(handle, "child_value");
    printf("at exit: loaded %d, a library %d", loaded(), value());
    printf(", closed %d\n", dlclose(handle) == 0);
}
static void exits(void) {
    handles[3] = must_open("./libchild.so", RTLD_NOW);
    atexit(at_exit);
    pthread_t thread;
    for (long i = 0; i < 4; i++) pthread_create(&thread, NULL, loads, (void *)i);
    for (int i = 0; i < 4; i++)
        while (__atomic_load_n(&rounds[i], __ATOMIC_RELAXED) < 20) usleep(100);
    __atomic_store_n(&is_ending, 1, __ATOMIC_RELEASE);
    exit(0);
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count > 1 && !strcmp(arguments[1], "exit")) exits();
    forks();
    return 0;
}
