// opened LIBRARY: opens libsigblock when handlers may have been set long before, so that user mode cannot be had. Prints the
// back end, and whether a handler waited for a section's end.
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>

static volatile int runs;
static void handler(int number) { runs += number == SIGUSR1; }

int main(int argc, char **argv) {
    signal(SIGUSR1, handler);
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) return puts(dlerror()), 2;
    void (*enter)(void) = (void (*)(void))dlsym(library, "sigblock_enter");
    void (*leave)(void) = (void (*)(void))dlsym(library, "sigblock_leave");
    int (*release)(void) = (int (*)(void))dlsym(library, "sigblock_release");
    const char *(*backend)(void) = (const char *(*)(void))dlsym(library, "sigblock_backend");
    enter();
    raise(SIGUSR1);
    int inside = runs;
    leave();
    printf("backend=%s inside=%d after=%d released=%d\n", backend(), inside, runs, release());
    return 0;
}
