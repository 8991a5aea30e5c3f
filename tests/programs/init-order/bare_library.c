// The library of bare.c, without a C library as well.
#include "report.h"
int bare_variable = 5;
static __thread int counter = 2;
static __attribute__((constructor)) void begin(int argc, char **argv, char **envp) { GIVEN("library constructor", argc, argv, envp); }
static __attribute__((destructor)) void end(void) { STACK("library destructor"); }
int bare_call(int x) {
    SAY("library called");
    return x + counter++;
}
