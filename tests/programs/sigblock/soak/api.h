// The loader's C API, as these programs use it (sigblock/include/sigblock.h has the contract). The symbols are weak, so that
// the programs link without a library; a program that needs them ends with 2 where the loader has none.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
struct sigblock_counts { uint64_t sections, held; };
__attribute__((weak)) void sigblock_enter(void);
__attribute__((weak)) void sigblock_leave(void);
__attribute__((weak)) unsigned *sigblock_word(void);
__attribute__((weak)) const char *sigblock_backend(void);
__attribute__((weak)) void sigblock_counts(struct sigblock_counts *);
#ifdef __cplusplus
}
#endif

// The word: bit 0 says that a signal waits, the bits above the low four count the sections entered.
enum { PEND = 0x1, STEP = 0x10, COUNT = ~0xf };

static inline void need_sigblock(void) {
    if (sigblock_enter && sigblock_leave && sigblock_word && sigblock_backend && sigblock_counts) return;
    fputs("the loader has no sigblock_enter and kin\n", stderr);
    _exit(2);
}

// Whether the word is what makes signals wait, so that a program may raise it by itself.
static inline int word_counts(void) {
    const char *backend = sigblock_backend();
    return !strcmp(backend, "user") || !strcmp(backend, "kernel");
}

// One instruction on memory: a signal comes before it or after it.
static inline void raise_word(unsigned *word) {
    __asm__ volatile("addl %1, %0" : "+m"(*word) : "i"(STEP) : "memory", "cc");
}
static inline void lower_word(unsigned *word) {
    __asm__ volatile("subl %1, %0" : "+m"(*word) : "i"(STEP) : "memory", "cc");
}
// The end of a section that raise_word began. After the last one nothing can set PEND any more; a section by calls has the signal
// that waits delivered at its end.
static inline void end_raised(unsigned *word) {
    lower_word(word);
    if (*(volatile unsigned *)word != PEND) return;
    sigblock_enter();
    sigblock_leave();
}
static inline void bump(volatile uint64_t *counter) {
    __asm__ volatile("incq %0" : "+m"(*counter) : : "cc");
}

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static inline void nap(double seconds) {
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left)) continue;
}
