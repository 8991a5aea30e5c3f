// The library's view of an indirect function that it, or the program, defines.
int named(void);
#ifdef DEFINES
static int chosen(void) { return 42; }
static int (*choose(void))(void) { return chosen; }
int named(void) __attribute__((ifunc("choose")));
#endif
void *library_address(void) { return (void *)named; }
int library_call(void) { return named(); }
