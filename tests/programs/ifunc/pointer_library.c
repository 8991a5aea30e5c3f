// A variable and thread-local variables that are initialised with the address of an indirect function: the resolved
// address must be found in the program's copy of the variable and in every thread's block.
#ifndef VISIBILITY
#define VISIBILITY "default"
#endif
static int chosen(void) { return 42; }
static int (*choose(void))(void) { return chosen; }
int indirect(void) __attribute__((ifunc("choose"), visibility(VISIBILITY)));
int (*pointer)(void) = indirect;
__thread int (*thread_pointer)(void) = indirect;
int call_thread_pointer(void) { return thread_pointer ? thread_pointer() : -1; }
int pointers_agree(void) { return pointer == thread_pointer; }
