// Prints what the allocator's settings do: bytes of fresh and of freed memory, which arena a thread's chunk is in, whether
// a chunk has a mapping of its own, how far the heap's end moves, how many freed chunks a thread keeps for itself.
// Chunk layout: glibc malloc/malloc.c, two flag bits below the pointer: 2 = own mapping, 4 = not the main arena.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long flags(void *chunk) { return ((size_t *)chunk)[-1] & 6; }

static pthread_barrier_t barrier;
static void *thread(void *unused) {
    (void)unused;
    pthread_barrier_wait(&barrier);
    void *chunk = malloc(100);
    unsigned long kind = flags(chunk);
    pthread_barrier_wait(&barrier);
    return (void *)kind;
}

int main(void) {
    unsigned char *fresh = malloc(64);
    printf("fresh %02x %02x\n", fresh[0], fresh[63]);
    volatile unsigned char *freed = malloc(64);
    free((void *)freed);
    printf("freed %02x\n", freed[40]);
    unsigned char *zeroed = calloc(1, 64);
    printf("calloc %02x\n", zeroed[63]);

    void *large = malloc(200000);
    printf("200000 bytes: %s\n", flags(large) & 2 ? "own mapping" : "heap");
    free(large);

    pthread_t ids[4];
    pthread_barrier_init(&barrier, 0, 4);
    for (int i = 0; i < 4; i++)
        if (pthread_create(&ids[i], 0, thread, 0)) return 2;
    int main_arena = 0;
    for (int i = 0; i < 4; i++) {
        void *kind;
        pthread_join(ids[i], &kind);
        main_arena += kind == 0;
    }
    printf("threads in the main arena %d\n", main_arena);

    char *start = sbrk(0);
    void *chunks[64];
    for (int i = 0; i < 64; i++) chunks[i] = malloc(4000);
    printf("heap grew by %ld pages\n", (long)(((char *)sbrk(0) - start) / 4096));
    for (int i = 0; i < 64; i++) free(chunks[i]);

    // Of 20 freed chunks a thread keeps some for itself, handed out again last in, first out; the rest goes to fast bins.
    for (int i = 0; i < 20; i++) chunks[i] = malloc(100);
    for (int i = 0; i < 20; i++) free(chunks[i]);
    printf("fast chunks %zu\n", mallinfo2().smblks);
    int kept = 0;
    void *again = malloc(100);
    while (kept < 20 && again != chunks[kept]) kept++;
    printf("first back %d\n", kept);
    return 0;
}
