// The first uses of malloc in a process are those of two threads at once: glibc initialises malloc without a lock, because its
// loader has used it before there is a second thread. Each round is a child of its own, whose threads begin together and end;
// no function that allocates is called before.
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 400, THREADS = 4 };
static int ready;

static void *use(void *unused) {
    void *blocks[64];
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < THREADS) __builtin_ia32_pause();
    for (int i = 0; i < 64; i++) {
        blocks[i] = malloc(1000 + 10 * i);
        if (!blocks[i]) _exit(3);
        *(volatile char *)blocks[i] = 1;
    }
    for (int i = 0; i < 64; i++) free(blocks[i]);
    return unused;
}

int main(void) {
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t threads[THREADS];
            alarm(20);
            for (int i = 0; i < THREADS; i++)
                if (pthread_create(&threads[i], 0, use, 0)) _exit(2);
            for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
            _exit(0);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status) {
            static const char words[] = "a child failed\n";
            return write(1, words, sizeof words - 1), 1;
        }
    }
    static const char words[] = "all rounds\n";
    return write(1, words, sizeof words - 1) < 0;
}
