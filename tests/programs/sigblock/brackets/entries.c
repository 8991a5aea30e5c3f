// entries [BINDINGS [VISITS]]: calls that many functions of a library for the first time each, and visits the objects
// that many times. Sets no handler and touches no mask. Prints what the calls gave and how many callbacks there were.
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

extern unsigned long call_first(unsigned long count);
static int callback(struct dl_phdr_info *object, size_t size, void *number) {
    (void)object;
    (void)size;
    ++*(long *)number;
    return 1;
}
int main(int argc, char **argv) {
    unsigned long bindings = argc > 1 ? strtoul(argv[1], 0, 0) : 0;
    long visits = argc > 2 ? strtol(argv[2], 0, 0) : 0, callbacks = 0;
    unsigned long sum = bindings ? call_first(bindings) : 0;
    for (long i = 0; i < visits; i++) dl_iterate_phdr(callback, &callbacks);
    printf("%lu %ld\n", sum, callbacks);
    return 0;
}
