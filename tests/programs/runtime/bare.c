// A thread is cancelled in a callback that has no unwind tables; then others iterate.
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

int bare_reached;
int bare(struct dl_phdr_info *, size_t, void *);
static int count_one(struct dl_phdr_info *info, size_t size, void *count) { return ++*(int *)count, !(info && size); }
static void *iterate_bare(void *none) { return dl_iterate_phdr(bare, &bare_reached), none; }
static void *iterate(void *count) { return dl_iterate_phdr(count_one, count), NULL; }

int main(void) {
    for (int round = 0; round < 3; round++) {
        pthread_t thread;
        void *result = NULL;
        int theirs = 0, mine = 0;
        bare_reached = 0;
        if (pthread_create(&thread, NULL, iterate_bare, NULL)) return 1;
        while (!__atomic_load_n(&bare_reached, __ATOMIC_SEQ_CST)) usleep(1000);
        usleep(10000);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        iterate(&mine);
        if (pthread_create(&thread, NULL, iterate, &theirs)) return 1;
        pthread_join(thread, NULL);
        printf("cancelled %d, iterated %d\n", result == PTHREAD_CANCELED, mine == theirs && mine > 2);
    }
    return 0;
}
