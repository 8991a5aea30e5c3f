// Linked by lld, whose PT_TLS begins where .tdata begins: its p_vaddr is not a multiple of p_align. Local exec accesses.
#include <pthread.h>
#include "../remainder.h"
#include <stdio.h>
static __thread volatile char first = 3;
static __thread volatile char aligned[8] __attribute__((aligned(256)));
static void *thread(void *unused) {
    (void)unused;
    printf("first %d aligned %lu zero %d\n", first, (unsigned long)remainder_of(aligned, 256), aligned[7]);
    first = 9;
    aligned[7] = 9;
    return 0;
}
int main(void) {
    pthread_t id;
    thread(0);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&id, 0, thread, 0) || pthread_join(id, 0)) return 2;
    return 0;
}
