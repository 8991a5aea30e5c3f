// Preloaded: an allocator that must not be entered while a thread-local variable is accessed: it aborts then.
#define _GNU_SOURCE
#include <stddef.h>
#include <unistd.h>
static char arena[1 << 24] __attribute__((aligned(16)));
static size_t used;
int forbidden;
int allocations;
static void *take(size_t size) {
    __atomic_fetch_add(&allocations, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&forbidden, __ATOMIC_SEQ_CST)) {
        (void)!write(2, "allocator entered\n", 18);
        _exit(3);
    }
    size_t start = __atomic_fetch_add(&used, (size + 31) & ~(size_t)15, __ATOMIC_SEQ_CST);
    if (start + size + 32 > sizeof arena) return NULL;
    *(size_t *)(arena + start) = size;
    return arena + start + 16;
}
void *malloc(size_t size) { return take(size); }
void *calloc(size_t count, size_t size) { return take(count * size); }
void *realloc(void *block, size_t size) {
    char *fresh = take(size), *old = block;
    if (fresh && old)
        for (size_t i = 0; i < size && i < *(size_t *)(old - 16); i++) fresh[i] = old[i];
    return fresh;
}
void *aligned_alloc(size_t alignment, size_t size) {
    char *block = take(size + alignment);
    return block ? (char *)(((size_t)block + alignment - 1) / alignment * alignment) : NULL;
}
void *memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = aligned_alloc(alignment, size);
    return *block ? 0 : 12;
}
void free(void *block) {
    (void)block;
    if (__atomic_load_n(&forbidden, __ATOMIC_SEQ_CST)) {
        (void)!write(2, "allocator entered by free\n", 26);
        _exit(3);
    }
}
