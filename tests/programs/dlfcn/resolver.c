// A plug-in with indirect functions: called, in a pointer, and by another name; the resolver uses relocated data, a function
// of a needed library, and a thread-local variable.
int own_61(void);
static int one(void) { return 1; }
static int two(void) { return 2; }
static int (*const table[])(void) = {one, two};
static __thread int chosen = 1;
int resolved;
static void *choose(void) {
    resolved++;
    return own_61() == 61 && chosen == 1 ? (void *)table[1] : (void *)table[0];
}
int indirect(void) __attribute__((ifunc("choose")));
static int inner(void) __attribute__((ifunc("choose")));
int (*pointer)(void) = indirect;
int (*inner_pointer)(void) = inner;
int call_indirect(void) { return indirect(); }
int call_inner(void) { return inner(); }
int call_pointer(void) { return pointer(); }
int call_inner_pointer(void) { return inner_pointer(); }
int equal_pointers(void) { return pointer == indirect; }
