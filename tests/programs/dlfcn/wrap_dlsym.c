// Preloaded: counts calls of dlsym and passes them on; it finds the real one by dlvsym.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
static int calls;
void *dlsym(void *handle, const char *name) {
    static void *(*next)(void *, const char *);
    if (!next) next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!next) abort();
    calls++;
    return next(handle, name);
}
int dlsym_calls(void) { return calls > 0; }
