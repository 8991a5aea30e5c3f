// The library's side of own_pointer.c.
static int chosen(void) { return 43; }
static int (*choose(void))(void) { return chosen; }
int from_library(void) __attribute__((ifunc("choose")));
