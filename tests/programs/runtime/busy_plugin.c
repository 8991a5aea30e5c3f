// What other threads open, use and close without pause: lazy slots, thread-local storage, a constructor that takes its time.
// Whatever threads share is atomic: ThreadSanitizer sees no lock of any loader's, nor what one does with memory.
extern int provided(int), bound_10(int), bound_11(int), bound_12(int);
static __thread int own = 3;
static int ready;
__attribute__((constructor)) static void construct(void) {
    for (int i = 0; i < 2000; i++) __atomic_store_n(&ready, -i, __ATOMIC_RELAXED);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
}
__attribute__((destructor)) static void destruct(void) { __atomic_store_n(&ready, 0, __ATOMIC_RELEASE); }
int busy_value(void) {
    if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) != 1) return -1;
    return provided(1) + bound_10(1) + bound_11(1) + bound_12(1) + __atomic_fetch_add(&own, 1, __ATOMIC_RELAXED);
}
