/* The program's own malloc is used by libc itself, and its own dl_iterate_phdr by a library: whoever defines first wins,
   also over functions that the loader provides. */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
static char pool[1 << 20];
static size_t used;
static int calls;
void *malloc(size_t size) {
    void *result = pool + used;
    used += (size + 15) & ~(size_t)15;
    calls++;
    return result;
}
void free(void *pointer) { (void)pointer; }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *old, size_t size) {
    void *fresh = malloc(size);
    return old ? memcpy(fresh, old, size) : fresh;
}
int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data) {
    (void)callback;
    (void)data;
    return 42;
}
int iterate(void);
int main(void) {
    int before = calls;
    char *copy = strdup("copied");
    int inside = copy >= pool && copy < pool + sizeof pool;
    int after = calls;
    printf("%d %d %s %d\n", after - before, inside, copy, iterate());
    return 0;
}
