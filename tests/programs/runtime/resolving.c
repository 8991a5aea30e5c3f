// resolving: a library is opened by another thread, and its resolvers run, while the process is copied in every way. Each child opens
// it too, by two threads, and calls through what its resolvers chose; so does the parent.
#include "forks.h"

int resolver_reached, resolver_may_go_on;
enum { VALUE = 1 + 543000 + 543 + 500 };

static void *opens(void *sum) {
    void *handle = dlopen("./libresolving.so", RTLD_NOW);
    int (*value)(void) = handle ? (int (*)(void))dlsym(handle, "resolved_value") : NULL;
    __atomic_fetch_add((int *)sum, value ? value() : -1, __ATOMIC_SEQ_CST);
    return NULL;
}

static const struct { const char *name; Way way; } ways[] = {
    {"fork", fork}, {"_Fork", _Fork}, {"clone", raw_clone}, {"syscall", raw_fork}};

int main(void) {
    pthread_t thread;
    int sum = 0;
    if (pthread_create(&thread, NULL, opens, &sum)) return 3;
    while (!__atomic_load_n(&resolver_reached, __ATOMIC_SEQ_CST)) usleep(1000);
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        pid_t child = ways[i].way();
        if (child == 0) {
            limit_child(20);
            resolver_may_go_on = 1;
            int seen = 0;
            // Who copies by a system call has no threads of the C library's.
            if (i == 0) {
                pthread_t other;
                if (pthread_create(&other, NULL, opens, &seen)) _exit(4);
                opens(&seen);
                pthread_join(other, NULL);
            } else {
                opens(&seen);
                opens(&seen);
            }
            _exit(seen == 2 * VALUE ? RIGHT : 5);
        }
        int status = status_of(child);
        if (status == RIGHT) printf("%s right\n", ways[i].name);
        else printf("%s %d\n", ways[i].name, status);
    }
    __atomic_store_n(&resolver_may_go_on, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    printf("the parent %s\n", sum == VALUE ? "right" : "wrong");
    return 0;
}
