// An indirect function whose resolver calls into another library through the PLT, while a non-PLT reference to it
// makes the loader run that resolver at relocation time. -DVISIBILITY="hidden" lets the linker make an IRELATIVE of it.
int pick_hint(void);
#ifndef VISIBILITY
#define VISIBILITY "default"
#endif
static int slow(void) { return 1; }
static int fast(void) { return 2; }
static int (*choose(void))(void) { return pick_hint() ? fast : slow; }
int work(void) __attribute__((ifunc("choose"), visibility(VISIBILITY)));
int (*work_pointer)(void) = work;
int call_work(void) { return work() * 10 + work_pointer(); }
