// Slots that only resolvers can fill, one of them in constant data, and a resolver that waits in the middle of it until it may go on.
extern int resolver_reached, resolver_may_go_on;
static int first(void) { return 3; }
static int second(void) { return 40; }
static int third(void) { return 500; }
static int (*choose_first(void))(void) { return first; }
static int (*choose_second(void))(void) {
    __atomic_store_n(&resolver_reached, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&resolver_may_go_on, __ATOMIC_SEQ_CST)) __builtin_ia32_pause();
    return second;
}
static int (*choose_third(void))(void) { return third; }
int chosen_first(void) __attribute__((ifunc("choose_first")));
int chosen_second(void) __attribute__((ifunc("choose_second")));
int chosen_third(void) __attribute__((ifunc("choose_third")));
static int (*const slots[])(void) = {chosen_first, chosen_second, chosen_third};
int (*writable)(void) = chosen_third;
static int ready;
__attribute__((constructor)) static void construct(void) {
    ready++;
    for (unsigned i = 0; i < sizeof slots / sizeof *slots; i++) ready += 1000 * slots[i]();
}
int resolved_value(void) { return ready + slots[0]() + slots[1]() + slots[2]() + writable(); }
