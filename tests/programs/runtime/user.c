// Calls what a library opened for all defines, without naming it as needed.
#define _GNU_SOURCE
#include <dlfcn.h>
int strong(void);
int weak(void);
int calls_strong(void) { return strong(); }
int calls_weak(void) { return weak(); }
int finds(void) {
    static int (*kept)(void);
    if (!kept) kept = (int (*)(void))dlsym(RTLD_DEFAULT, "found");
    return kept();
}
