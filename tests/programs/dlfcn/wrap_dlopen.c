// Preloaded: counts calls of dlopen and passes them on.
#define _GNU_SOURCE
#include <dlfcn.h>
static int calls;
void *dlopen(const char *file, int mode) {
    static void *(*next)(const char *, int);
    if (!next) next = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    calls++;
    return next(file, mode);
}
int dlopen_calls(void) { return calls; }
