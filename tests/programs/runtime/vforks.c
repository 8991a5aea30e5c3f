// Children that share their parent's memory: vfork, and a raw clone(2) with CLONE_VM and CLONE_VFORK. They are no forks: what
// other threads are in the middle of goes on. Beside posix_spawn, system and popen, while other threads open and bind.
#include "forks.h"
#include <sched.h>
#include <spawn.h>
extern char **environ;

static int stop;
static void *opens(void *path) {
    unsigned long rounds = 0;
    for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); rounds++) {
        void *handle = must_open(path, RTLD_LAZY);
        if (((int (*)(void))must_find(handle, "busy_value"))() < 40) abort();
        if (dlsym(handle, "nosuch") || !dlerror() || dlclose(handle)) abort();
    }
    return (void *)rounds;
}

static int use(void *unused) {
    int seen = 0;
    dl_iterate_phdr(count_object, &seen);
    // The loader's heap and the writer lock, both of which another thread may have at this moment.
    void *handle = dlopen("./libchild.so", RTLD_NOW);
    if (!handle || dlsym(handle, "nosuch") || !dlerror() || dlclose(handle)) _exit(1);
    _exit(seen > 2 && !unused ? RIGHT : 2);
}
static int vforked(void) {
    pid_t child = vfork();
    if (child == 0) {
        char *const arguments[] = {"true", NULL};
        if (dlsym(RTLD_DEFAULT, "nosuch") || !dlerror()) _exit(9);
        execve("/bin/true", arguments, environ);
        _exit(8);
    }
    return status_of(child);
}
static int shared(void) {
    static char stack[256 << 10] __attribute__((aligned(64)));
    pid_t child = clone(use, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    return status_of(child);
}
static int spawned(void) {
    char *const arguments[] = {"true", NULL};
    pid_t child;
    return posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) ? -1 : status_of(child);
}
static int piped(void) {
    FILE *pipe = popen("exit 3", "r");
    return pipe ? WEXITSTATUS(pclose(pipe)) : -1;
}

int main(void) {
    pthread_t threads[3];
    char *const paths[] = {"./libbusy1.so", "./libbusy2.so", "./libbusy3.so"};
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, opens, paths[i])) return 2;
    int right[5] = {0}, rounds = 30;
    for (int round = 0; round < rounds; round++) {
        right[0] += vforked() == 0;
        right[1] += shared() == RIGHT;
        right[2] += spawned() == 0;
        if (round % 5 == 0) right[3] += WEXITSTATUS(system("exit 4")) == 4;
        if (round % 5 == 0) right[4] += piped() == 3;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    unsigned long least = -1UL;
    for (int i = 0; i < 3; i++) {
        void *made;
        pthread_join(threads[i], &made);
        if ((unsigned long)made < least) least = (unsigned long)made;
    }
    printf("vfork %d, clone with the memory %d, posix_spawn %d, system %d, popen %d; others went on %d\n", right[0], right[1],
           right[2], right[3], right[4], least > 10);
    return 0;
}
