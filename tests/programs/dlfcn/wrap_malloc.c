// Preloaded: the allocator's functions, counted and passed on to the next ones; a buffer serves while those are looked up.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
static char buffer[1 << 16] __attribute__((aligned(16)));
static size_t used;
static int calls, looking;
static void *(*next_malloc)(size_t), *(*next_calloc)(size_t, size_t), *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);

static void *from_buffer(size_t size) {
    void *block = buffer + used;
    used += (size + 15) & ~(size_t)15;
    return used <= sizeof buffer ? block : NULL;
}
static int ready(void) {
    calls++;
    if (next_free) return 1;
    if (looking) return 0;
    looking = 1;
    next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    next_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    next_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    return 1;
}
void *malloc(size_t size) { return ready() ? next_malloc(size) : from_buffer(size); }
void *calloc(size_t count, size_t size) { return ready() ? next_calloc(count, size) : from_buffer(count * size); }
void *realloc(void *block, size_t size) { return ready() ? next_realloc(block, size) : from_buffer(size); }
void free(void *block) {
    if ((char *)block >= buffer && (char *)block < buffer + sizeof buffer) return;
    if (ready()) next_free(block);
}
int malloc_used(void) { return calls > 0; }
