// Where the program's own code runs outside of the loader's sections and where inside: how many are open there.
// Prints a line for each.
#define _GNU_SOURCE
#include "../semantics/section.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

extern unsigned resolver_depth;
extern int resolved(void);
extern unsigned depth_in_call(void);
static unsigned at_constructor = 99;
__attribute__((constructor)) static void constructor(void) { at_constructor = depth(); }
static void at_exit(void) { printf("function of atexit %u\n", depth()); }
__attribute__((destructor)) static void destructor(void) { printf("destructor of the program %u\n", depth()); }

static int callback(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)object;
    (void)size;
    (void)unused;
    printf("callback %u\n", depth());
    return 1;
}
static int inner(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)object;
    (void)size;
    (void)unused;
    dl_iterate_phdr(callback, 0);
    printf("callback again %u\n", depth());
    return 1;
}
static void opens(void *unused) {
    (void)unused;
    void *handle = dlopen("./libtold.so", RTLD_NOW);
    int *told = handle ? dlsym(handle, "told") : 0;
    printf("constructor of what a callback opens %d\n", told ? *told : -1);
    printf("callback after dlopen %u\n", depth());
    printf("closed %d\n", handle ? dlclose(handle) : -1);
}
int main(void) {
    atexit(at_exit);
    printf("constructor of the program %u\n", at_constructor);
    printf("main %u\n", depth());
    dl_iterate_phdr(callback, 0);
    dl_iterate_phdr(inner, 0);
    printf("function that is bound %u\n", depth_in_call());
    resolved();
    printf("resolver %u\n", resolver_depth);
    void *handle = dlopen("./libtold.so", RTLD_LAZY);
    int *told = handle ? dlsym(handle, "told") : 0;
    printf("constructor of what is opened %d\n", told ? *told : -1);
    if (handle) dlclose(handle);
    in_callback(opens, 0);
    dlopen("./libtold.so", RTLD_LAZY);
    printf("main again %u\n", depth());
    return 0;
}
