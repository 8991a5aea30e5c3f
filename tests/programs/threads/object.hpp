// A thread_local object that reports its life to whoever counts.
extern int made, gone;
struct Object {
    int number = 1;
    Object() { __atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST); }
    ~Object() { __atomic_fetch_add(&gone, 1, __ATOMIC_SEQ_CST); }
};
int touch_library();
