// What other threads open, use and close without pause: lazy slots, thread-local storage, a constructor that takes its time.
extern int provided(int), bound_10(int), bound_11(int), bound_12(int);
static __thread int own = 3;
static volatile int ready;
__attribute__((constructor)) static void construct(void) {
    for (int i = 0; i < 2000; i++) ready = i;
    ready = 1;
}
__attribute__((destructor)) static void destruct(void) { ready = 0; }
int busy_value(void) { return ready ? provided(1) + bound_10(1) + bound_11(1) + bound_12(1) + own++ : -1; }
