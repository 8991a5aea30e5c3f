/* A library that calls dl_iterate_phdr, which the program may have defined itself. */
#define _GNU_SOURCE
#include <link.h>
static int none(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info;
    (void)size;
    (void)data;
    return 7;
}
int iterate(void) { return dl_iterate_phdr(none, 0); }
