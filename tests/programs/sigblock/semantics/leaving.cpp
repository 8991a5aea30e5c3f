// Callbacks of dl_iterate_phdr that do not return: left by jumps, exceptions, the end of their thread, another
// context. Each is left in the visit to a plug-in while a signal waits. Afterwards nothing of the section is left:
// its signals come, another thread can visit, the plug-in can be closed. Under ld-linux only an exception and the end
// of the thread leave its lock free: what hangs there is not asked of it.
#include "cases.h"
#include <dlfcn.h>
#include <setjmp.h>
#include <ucontext.h>

static const char PLUGIN[] = "./libplugin.so";
static bool lock_stays_taken;

static bool is_plugin(const struct dl_phdr_info *object) { return strstr(object->dlpi_name, "libplugin.so") != 0; }
static int counts(struct dl_phdr_info *object, size_t, void *found) {
    if (is_plugin(object)) ++*(int *)found;
    return 0;
}
static void *visits(void *) {
    int found = 0;
    dl_iterate_phdr(counts, &found);
    return (void *)(long)(found + 1);
}
// What is left behind: nothing.
static void after(void *handle) {
    void *found = 0;
    pthread_t thread;
    int before = runs;
    say("depth %u, held %d", depth(), before);
    kill(getpid(), SIGUSR1);
    say(", plain %d", runs - before);
    if (lock_stays_taken && !sigblock_word) {
        say(", the rest is not asked of ld-linux; ");
        return;
    }
    if (pthread_create(&thread, 0, visits, 0) || pthread_join(thread, &found)) give_up("a thread");
    say(", another thread sees %ld", (long)found - 1);
    int closed = dlclose(handle), left = 0;
    dl_iterate_phdr(counts, &left);
    enter();
    kill(getpid(), SIGUSR1);
    int inside = runs - before - 1;
    leave();
    say(", closed %d left %d, inside %d after %d depth %u; ", closed, left, inside, runs - before - 1, depth());
}

static const struct timespec SHORT = {0, 1000};
typedef void (*leaver)();
static int leaves(struct dl_phdr_info *object, size_t, void *how) {
    if (!is_plugin(object)) return 0;
    pthread_kill(pthread_self(), SIGUSR1);
    if (sigblock_word && depth() == 0) say("no section in the callback; ");
    ((leaver)how)();
    say("it came back; ");
    return 0;
}
static void *open_plugin() {
    void *handle = dlopen(PLUGIN, RTLD_NOW);
    if (!handle) give_up("dlopen: %s", dlerror());
    runs = 0;
    on(SIGUSR1, 0);
    return handle;
}

static jmp_buf plain_target;
static sigjmp_buf mask_target;
static ucontext_t context_target;
static void by_longjmp() { longjmp(plain_target, 5); }
static void by_underscore_longjmp() { _longjmp(plain_target, 5); }
static void by_siglongjmp() { siglongjmp(mask_target, 5); }
static void by_checked_longjmp() {
    void (*checked)(jmp_buf, int) = (void (*)(jmp_buf, int))dlsym(RTLD_DEFAULT, "__longjmp_chk");
    if (!checked) give_up("__longjmp_chk");
    checked(plain_target, 5);
}
static void by_setcontext() { setcontext(&context_target); }

// Three times, as the second visit meets what the first has left.
static void jumps(leaver how) {
    lock_stays_taken = true;
    for (volatile int round = 0; round < (sigblock_word ? 3 : 1); round++) {
        void *volatile handle = open_plugin();
        if (setjmp(plain_target) == 0) dl_iterate_phdr(leaves, (void *)how);
        after(handle);
    }
}
static void longjmp_out() { jumps(by_longjmp); }
static void underscore_longjmp_out() { jumps(by_underscore_longjmp); }
static void checked_longjmp_out() { jumps(by_checked_longjmp); }
static void siglongjmp_out() {
    lock_stays_taken = true;
    for (volatile int save = 0; save < (sigblock_word ? 2 : 1); save++) {
        void *volatile handle = open_plugin();
        if (sigsetjmp(mask_target, save) == 0) dl_iterate_phdr(leaves, (void *)by_siglongjmp);
        after(handle);
    }
}
static void setcontext_out() {
    volatile int back = 0;
    lock_stays_taken = true;
    void *volatile handle = open_plugin();
    getcontext(&context_target);
    if (back++ == 0) dl_iterate_phdr(leaves, (void *)by_setcontext);
    after(handle);
}

struct Guard {
    ~Guard() { runs += 0; }
};
static void by_exception() {
    Guard guard;
    throw 5;
}
static void exception_out() {
    for (int round = 0; round < 3; round++) {
        void *handle = open_plugin();
        try {
            dl_iterate_phdr(leaves, (void *)by_exception);
        } catch (int value) {
            say("%d ", value);
        }
        after(handle);
    }
}
static int nested_throw(struct dl_phdr_info *, size_t, void *) {
    Guard guard;
    return dl_iterate_phdr(leaves, (void *)by_exception);
}
static void exception_out_of_two() {
    void *handle = open_plugin();
    try {
        dl_iterate_phdr(nested_throw, 0);
    } catch (int value) {
        say("%d ", value);
    }
    after(handle);
}
static int catches_inner(struct dl_phdr_info *object, size_t, void *) {
    if (!is_plugin(object)) return 0;
    try {
        dl_iterate_phdr(leaves, (void *)by_exception);
    } catch (int value) {
        say("%d ", value);
    }
    say("depth %u held %d, ", depth(), (int)runs);
    return 1;
}
static void exception_into_outer() {
    void *handle = open_plugin();
    dl_iterate_phdr(catches_inner, 0);
    after(handle);
}
static int catches_itself(struct dl_phdr_info *object, size_t, void *) {
    if (!is_plugin(object)) return 0;
    pthread_kill(pthread_self(), SIGUSR1);
    try {
        by_exception();
    } catch (int value) {
        say("%d ", value);
    }
    if (setjmp(plain_target) == 0) longjmp(plain_target, 1);
    if (sigsetjmp(mask_target, 1) == 0) siglongjmp(mask_target, 1);
    say("depth %u runs %d, ", depth(), (int)runs);
    return 1;
}
static void inside_a_callback() {
    void *handle = open_plugin();
    dl_iterate_phdr(catches_itself, 0);
    after(handle);
}
static int jumps_from_inner(struct dl_phdr_info *object, size_t, void *) {
    if (!is_plugin(object)) return 0;
    if (setjmp(plain_target) == 0) dl_iterate_phdr(leaves, (void *)by_longjmp);
    say("depth %u held %d, ", depth(), (int)runs);
    return 1;
}
static void longjmp_into_outer() {
    lock_stays_taken = true;
    void *handle = open_plugin();
    dl_iterate_phdr(jumps_from_inner, 0);
    after(handle);
}

// The end of the thread: its own clean-up runs, and nothing of the visit stays.
static int cleaned;
static void clean(void *) { cleaned++; }
static void by_pthread_exit() { pthread_exit((void *)5); }
static void by_cancel() {
    pthread_cancel(pthread_self());
    pthread_testcancel();
}
static void by_asynchronous_cancel() {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    pthread_cancel(pthread_self());
}
static void by_sleeping_cancel() {
    pthread_cancel(pthread_self());
    sleep_milliseconds(10000);
}
static void *visiting_thread(void *how) {
    Guard guard;
    pthread_cleanup_push(clean, 0);
    dl_iterate_phdr(leaves, how);
    pthread_cleanup_pop(0);
    return 0;
}
static void ends_thread(leaver how) {
    for (int round = 0; round < 2; round++) {
        void *handle = open_plugin(), *value = 0;
        pthread_t thread;
        if (pthread_create(&thread, 0, visiting_thread, (void *)how) || pthread_join(thread, &value)) give_up("a thread");
        say("%ld cleaned %d ", (long)value, cleaned);
        after(handle);
    }
}
static void pthread_exit_out() { ends_thread(by_pthread_exit); }
static void cancel_out() { ends_thread(by_cancel); }
static void asynchronous_cancel_out() { ends_thread(by_asynchronous_cancel); }
static void sleeping_cancel_out() { ends_thread(by_sleeping_cancel); }

// A coroutine that is left in its visit and continued.
static ucontext_t of_main, of_other;
static char stack[1 << 18];
static void by_swapcontext() {
    swapcontext(&of_other, &of_main);
    say("continued depth %u, ", sigblock_word ? depth() > 1 : 0);
}
static int visit_and_return(struct dl_phdr_info *object, size_t size, void *how) {
    if (!is_plugin(object)) return 0;
    pthread_kill(pthread_self(), SIGUSR1);
    ((leaver)how)();
    (void)size;
    return 7;
}
static void other_context() {
    int status = dl_iterate_phdr(visit_and_return, (void *)by_swapcontext);
    say("status %d, ", status);
}
static void swapcontext_and_back() {
    void *handle = open_plugin();
    getcontext(&of_other);
    of_other.uc_stack.ss_sp = stack;
    of_other.uc_stack.ss_size = sizeof stack;
    of_other.uc_link = &of_main;
    makecontext(&of_other, other_context, 0);
    swapcontext(&of_main, &of_other);
    int mine = 0, before = runs;
    kill(getpid(), SIGUSR1);
    say("left: depth %u held %d plain %d, ", depth(), before, runs - before);
    dl_iterate_phdr(counts, &mine);
    say("own visit %d, ", mine);
    swapcontext(&of_main, &of_other);
    runs = 1;
    after(handle);
}

// What saves the mask inside, while one is held, saves the program's: the place is gone back to inside, and after a
// call that ends the section.
static int comes_back(struct dl_phdr_info *object, size_t, void *with_call) {
    if (!is_plugin(object)) return 0;
    sigset_t none;
    volatile int back = 0, again = 0;
    sigemptyset(&none);
    pthread_kill(pthread_self(), SIGUSR1);
    getcontext(&context_target);
    if (back++ == 0) {
        if (with_call) ppoll(0, 0, &SHORT, &none);
        setcontext(&context_target);
    }
    pthread_kill(pthread_self(), SIGUSR1);
    sigsetjmp(mask_target, 1);
    if (again++ == 0) {
        if (with_call) ppoll(0, 0, &SHORT, &none);
        siglongjmp(mask_target, 1);
    }
    say("%d %d ", back, again);
    return 1;
}
static void comes_back_in_callback(void *with_call) {
    sigset_t now;
    void *handle = open_plugin();
    dl_iterate_phdr(comes_back, with_call);
    pthread_sigmask(SIG_BLOCK, 0, &now);
    say("blocked %d %d, ", sigismember(&now, SIGUSR1), sigismember(&now, SIGHUP));
    runs = 1;
    after(handle);
}
static void comes_back_inside() { comes_back_in_callback(0); }
static void comes_back_after_call() { comes_back_in_callback(&stack); }
// The same in a section of the program's own, gone back to when it has ended.
static void comes_back_after_end() {
    volatile int back = 0, again = 0;
    sigset_t now;
    on(SIGUSR1, 0);
    enter();
    pthread_kill(pthread_self(), SIGUSR1);
    getcontext(&context_target);
    if (back++ == 0) {
        leave();
        setcontext(&context_target);
    }
    pthread_sigmask(SIG_BLOCK, 0, &now);
    say("runs %d blocked %d, ", (int)runs, sigismember(&now, SIGHUP));
    enter();
    pthread_kill(pthread_self(), SIGUSR1);
    sigsetjmp(mask_target, 1);
    if (again++ == 0) {
        leave();
        siglongjmp(mask_target, 1);
    }
    pthread_sigmask(SIG_BLOCK, 0, &now);
    say("runs %d blocked %d, ", (int)runs, sigismember(&now, SIGHUP));
    pthread_kill(pthread_self(), SIGUSR1);
    say("runs %d depth %u", (int)runs, depth());
}
// Contexts swapped outside of any section: each has its own mask.
static void coroutine() {
    sigset_t now;
    swapcontext(&of_other, &of_main);
    pthread_sigmask(SIG_BLOCK, 0, &now);
    pthread_kill(pthread_self(), SIGUSR1);
    say("in it blocked %d runs %d, ", sigismember(&now, SIGHUP), (int)runs);
}
static void coroutine_of_section() {
    sigset_t now;
    on(SIGUSR1, 0);
    getcontext(&of_other);
    of_other.uc_stack.ss_sp = stack;
    of_other.uc_stack.ss_size = sizeof stack;
    of_other.uc_link = &of_main;
    makecontext(&of_other, coroutine, 0);
    swapcontext(&of_main, &of_other);
    swapcontext(&of_main, &of_other);
    pthread_sigmask(SIG_BLOCK, 0, &now);
    say("blocked %d runs %d depth %u", sigismember(&now, SIGHUP), (int)runs, depth());
}

// Out of a handler: one that a fault started in the callback, one that was held and runs at the section's end.
static void jumps_away(int) { siglongjmp(mask_target, 5); }
static void by_fault() { *(volatile char *)8 = 1; }
static void fault_out() {
    lock_stays_taken = true;
    for (volatile int round = 0; round < (sigblock_word ? 3 : 1); round++) {
        void *volatile handle = open_plugin();
        signal(SIGSEGV, jumps_away);
        if (sigsetjmp(mask_target, 1) == 0) dl_iterate_phdr(leaves, (void *)by_fault);
        after(handle);
    }
}
static void held_handler_out() {
    sigset_t now;
    for (volatile int round = 0; round < 3; round++) {
        signal(SIGUSR1, jumps_away);
        if (sigsetjmp(mask_target, 1) == 0) {
            enter();
            kill(getpid(), SIGUSR1);
            kill(getpid(), SIGUSR2);
            say("inside, ");
            on(SIGUSR2, 0);
            leave();
            say("not here, ");
        }
        // By hand the depth is lowered before.
        sigprocmask(SIG_BLOCK, 0, &now);
        on(SIGUSR1, 0);
        kill(getpid(), SIGUSR1);
        say("depth %u blocked %d %d runs %d, ", depth(), sigismember(&now, SIGUSR1), sigismember(&now, SIGHUP), (int)runs);
        runs = 0;
        on(SIGUSR2, 0);
    }
}

#define GONE "depth 0, held 1, plain 1, another thread sees 1, closed 0 left 0, inside 0 after 1 depth 0; "
#define DEAF "depth 0, held 1, plain 0, another thread sees 1, closed 0 left 0, inside -1 after -1 depth 0; "
#define PROGRAMS_OWN "runs 1 blocked 0, runs 2 blocked 0, runs 3 depth 0"
#define NOT_ASKED "depth 0, held 1, plain 1, the rest is not asked of ld-linux; "
static const struct test_case cases[] = {
    {"longjmp", longjmp_out, NOT_ASKED, GONE GONE GONE, GONE GONE GONE},
    {"_longjmp", underscore_longjmp_out, NOT_ASKED, GONE GONE GONE, GONE GONE GONE},
    {"__longjmp_chk", checked_longjmp_out, NOT_ASKED, GONE GONE GONE, GONE GONE GONE},
    {"siglongjmp without and with the mask", siglongjmp_out, NOT_ASKED, GONE GONE, GONE GONE},
    {"setcontext", setcontext_out, NOT_ASKED, GONE, GONE},
    {"exception", exception_out, "5 " GONE "5 " GONE "5 " GONE, 0, 0},
    {"exception out of two visits", exception_out_of_two, "5 " GONE, 0, 0},
    {"exception out of the inner of two visits", exception_into_outer,
     "5 depth 0 held 1, " GONE, "5 depth 1 held 0, " GONE, "5 depth 1 held 0, " GONE},
    {"exception and jumps that stay in the callback", inside_a_callback,
     "5 depth 0 runs 1, " GONE, "5 depth 1 runs 0, " GONE, "5 depth 1 runs 0, " GONE},
    {"longjmp out of the inner of two visits", longjmp_into_outer,
     "depth 0 held 1, " NOT_ASKED, "depth 1 held 0, " GONE, "depth 1 held 0, " GONE},
    {"pthread_exit", pthread_exit_out, "5 cleaned 1 " GONE "5 cleaned 2 " GONE, 0, 0},
    {"cancellation", cancel_out, "-1 cleaned 1 " GONE "-1 cleaned 2 " GONE, 0, 0},
    {"asynchronous cancellation", asynchronous_cancel_out, "-1 cleaned 1 " GONE "-1 cleaned 2 " GONE, 0, 0},
    {"cancellation of a sleeping callback", sleeping_cancel_out, "-1 cleaned 1 " GONE "-1 cleaned 2 " GONE, 0, 0},
    {"swapcontext and back", swapcontext_and_back,
     "left: depth 0 held 1 plain 1, own visit 1, continued depth 0, status 7, " GONE, 0, 0},
    // With sigprocmask what is saved inside is the section's mask, as in any section that is made by hand, and giving
    // it back blocks for good what it holds.
    {"the mask that setcontext and siglongjmp give back in a callback", comes_back_inside, "2 2 blocked 0 0, " GONE, 0,
     "2 2 blocked 1 1, " DEAF},
    {"the mask that they give back after a call that ended the section", comes_back_after_call, "2 2 blocked 0 0, " GONE, 0,
     "2 2 blocked 1 1, " DEAF},
    {"the mask that they give back after a section", comes_back_after_end, "=", PROGRAMS_OWN, "=", PROGRAMS_OWN},
    {"contexts swapped", coroutine_of_section, "in it blocked 0 runs 1, blocked 0 runs 1 depth 0", 0, 0},
    {"siglongjmp out of a fault's handler", fault_out, NOT_ASKED, GONE GONE GONE, GONE GONE GONE},
    {"siglongjmp out of a held handler", held_handler_out, "=", 0, 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
