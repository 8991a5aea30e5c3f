// What a child opens: a constructor that must have run, a thread-local variable, and a function of another object that the
// child is the first to call. It uses nothing of the C library: malloc may be torn in the child of a raw clone.
extern int provided(int);
static int ready;
static __thread int calls = 4;
__attribute__((constructor)) static void construct(void) { __atomic_store_n(&ready, 1, __ATOMIC_RELEASE); }
int child_value(void) {
    return __atomic_load_n(&ready, __ATOMIC_ACQUIRE) ? provided(__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED)) : -1;
}
