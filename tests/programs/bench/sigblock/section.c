// What one empty section costs: as one plain write to a word at each end, as LOCKed writes (FreeBSD's rtld), as two system calls,
// and by the loader's own functions. The word is this program's own, so that the first three are the same under every loader.
#define _GNU_SOURCE
#include "measure.h"
#include <stdint.h>
#include <sys/syscall.h>

enum { PENDING = 1, STEP = 0x10 };

static _Thread_local uint32_t own_word;

__attribute__((noinline, cold)) static void signal_pending(void) {
    fprintf(stderr, "nothing sets the word's flag here\n");
    exit(1);
}

static void plain(uint32_t *word, long count) {
    for (long i = 0; i < count; i++) {
        __asm__ volatile("addl %1, %0" : "+m"(*word) : "i"(STEP) : "memory", "cc");
        __asm__ volatile("subl %1, %0" : "+m"(*word) : "i"(STEP) : "memory", "cc");
        if (__builtin_expect(*(volatile uint32_t *)word == PENDING, 0)) signal_pending();
    }
}

static void locked(uint32_t *word, long count) {
    for (long i = 0; i < count; i++) {
        __atomic_fetch_add(word, STEP, __ATOMIC_ACQ_REL);
        if (__builtin_expect(__atomic_fetch_sub(word, STEP, __ATOMIC_ACQ_REL) == (STEP | PENDING), 0)) signal_pending();
    }
}

static long mask(int how, const uint64_t *set, uint64_t *old) {
    long result;
    register long size __asm__("r10") = sizeof *set;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_rt_sigprocmask), "D"((long)how), "S"(set), "d"(old), "r"(size)
                     : "rcx", "r11", "memory");
    return result;
}

static void system_calls(long count) {
    const uint64_t all = ~UINT64_C(0);
    for (long i = 0; i < count; i++) {
        uint64_t old;
        if (mask(SIG_BLOCK, &all, &old) || mask(SIG_SETMASK, &old, NULL)) exit(1);
    }
}

static void functions(long count) {
    for (long i = 0; i < count; i++) {
        sigblock_enter();
        sigblock_leave();
    }
}

int main(int argument_count, char **arguments) {
    long count = count_argument(argument_count, arguments);
    print_backend();
    // Not the thread's variable by name: its address is computed once and stays in a register.
    uint32_t *word = &own_word;
    plain(word, 1000);
    struct phase start = phase_start();
    plain(word, count);
    phase_end(start, "word", count);
    start = phase_start();
    locked(word, count);
    phase_end(start, "locked", count);
    // Two orders of magnitude slower.
    start = phase_start();
    system_calls(count / 100);
    phase_end(start, "sigprocmask", count / 100);
    if (sigblock_enter && sigblock_leave) {
        functions(100);
        start = phase_start();
        functions(count / 100);
        phase_end(start, "functions", count / 100);
    }
    return *word ? 1 : 0;
}
