// daemons COUNT: processes whose threads load and unload become daemons by daemon(3), whose fork is inside the C library. Each daemon
// iterates, binds and opens, and tells by a pipe how far it came.
#include "forks.h"

static void *opens(void *path) {
    for (;;) {
        void *handle = must_open(path, RTLD_NOW);
        dlclose(handle);
    }
    return NULL;
}

int main(int count, char **arguments) {
    int wanted = count > 1 ? atoi(arguments[1]) : 0, right = 0, objects = 0;
    dl_iterate_phdr(count_object, &objects);
    for (int i = 0; i < wanted; i++) {
        int pipes[2], status = -1;
        if (pipe(pipes)) return 3;
        pid_t child = fork();
        if (child == 0) {
            pthread_t threads[2];
            if (pthread_create(&threads[0], NULL, opens, "./libbusy1.so")) _exit(4);
            if (pthread_create(&threads[1], NULL, opens, "./libbusy2.so")) _exit(4);
            usleep(2000 + 137 * i);
            if (daemon(1, 1)) _exit(5);
            limit_child(20);
            status = child_work("./libchild.so", objects);
            if (write(pipes[1], &status, sizeof status) != sizeof status) _exit(6);
            _exit(0);
        }
        close(pipes[1]);
        int ended = status_of(child);
        while (read(pipes[0], &status, sizeof status) < 0 && errno == EINTR) continue;
        close(pipes[0]);
        right += ended == 0 && status == RIGHT;
        if (ended || status != RIGHT) printf("daemon %d: %d, %d\n", i, ended, status);
    }
    printf("daemons %d of %d\n", right, wanted);
    return 0;
}
