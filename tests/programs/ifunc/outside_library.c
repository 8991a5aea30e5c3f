// A resolver that returns an address outside any text. -DEARLY adds a reference that is resolved at start even when
// binding is lazy.
static int (*choose(void))(void) { return (int (*)(void))0x10; }
int outside(void) __attribute__((ifunc("choose")));
#ifdef EARLY
int (*outside_pointer)(void) = outside;
#endif
int call_outside(void) { return outside(); }
