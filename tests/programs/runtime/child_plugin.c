// What a child opens: a constructor that must have run, a thread-local variable, and a function of another object that the
// child is the first to call. It uses nothing of the C library: malloc may be torn in the child of a raw clone.
extern int provided(int);
static int ready;
static __thread int calls = 4;
__attribute__((constructor)) static void construct(void) { ready = 1; }
int child_value(void) { return ready ? provided(++calls) : -1; }
