// A resolver that reads a thread-local variable of its own library: initialised before any resolver runs. -DMODEL picks
// the access model.
__thread int five __attribute__((tls_model(MODEL))) = 5;
__thread int zero __attribute__((tls_model(MODEL)));
static int right(void) { return 55; }
static int wrong(void) { return 1; }
static int (*choose(void))(void) { return five == 5 && zero == 0 ? right : wrong; }
int work(void) __attribute__((ifunc("choose")));
int (*work_pointer)(void) = work;
int call_work(void) { return work() == work_pointer() ? work() : 2; }
