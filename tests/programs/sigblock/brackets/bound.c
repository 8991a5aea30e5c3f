// What sections.c and outside.c bind: a function, and one that a resolver chooses.
#define _GNU_SOURCE
#include "../semantics/section.h"
unsigned resolver_depth = 99;
static int chosen(void) { return 8; }
static int (*choose(void))(void) {
    resolver_depth = depth();
    return chosen;
}
int resolved(void) __attribute__((ifunc("choose")));
int bound(void) { return 7; }
unsigned depth_in_call(void) { return depth(); }
