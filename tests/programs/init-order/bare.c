// The C part of bare.S: no C library, no start files.
#include "report.h"
int bare_call(int);
extern int bare_variable;
static __thread int local = 6;
static void preinit(void) { STACK("program preinit"); }
__attribute__((section(".preinit_array"), used)) static void (*preinits[])(void) = {preinit};

int bare_main(long *stack, long remainder, void *finaliser) {
    if (remainder) SAY("entry: stack misaligned"); else SAY("entry");
    if (!finaliser) SAY("entry: rdx is 0");
    long argc = stack[0];
    char **argv = (char **)(stack + 1), **envp = argv + argc + 1;
    GIVEN("program", argc, argv, envp);
    while (*envp) envp++;
    unsigned long *auxv = (unsigned long *)(envp + 1);
    for (; auxv[0]; auxv += 2)
        if (auxv[0] == 9) { // AT_ENTRY
            extern char _start[];
            if (auxv[1] == (unsigned long)_start) SAY("AT_ENTRY is the program's");
        }
    // Thread-local variables work without a C library: the loader sets the thread pointer.
    return bare_call(local) + bare_variable - 13;
}
