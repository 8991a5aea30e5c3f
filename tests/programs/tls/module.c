// A library with thread-local data of every kind. -DNUMBER=n names it, -DMODEL="..." sets the access model, -DALIGNMENT=a that
// of an array, -DSIZE=s its size. value() counts its own calls in a thread, misaligned() is 0, zeros() counts bytes that are not
// zero but should be.
#include "../remainder.h"
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#ifndef ALIGNMENT
#define ALIGNMENT 16
#endif
#ifndef SIZE
#define SIZE 100
#endif
#ifdef MODEL
#define THREAD __thread __attribute__((tls_model(MODEL)))
#else
#define THREAD __thread
#endif
// Local dynamic needs names that are not visible: -DHIDDEN with -fvisibility=hidden.
#define PUBLIC __attribute__((visibility("default")))
#ifdef HIDDEN
THREAD int exported = NUMBER;
#else
PUBLIC THREAD int exported = NUMBER;
#endif
static THREAD char odd = 7;
static THREAD int own = 1;
static THREAD char large[SIZE] __attribute__((aligned(ALIGNMENT)));
static THREAD int after = 3;
THREAD int JOIN(exported_, NUMBER) = NUMBER;

PUBLIC int value(void) {
    odd++;
    after++;
    return exported++ + own++ - 1;
}
PUBLIC int misaligned(void) { return (int)remainder_of(large, ALIGNMENT); }
PUBLIC int zeros(void) {
    int count = 0;
    for (int i = 0; i < SIZE; i++) count += large[i] != 0;
    return count;
}
PUBLIC void fill(void) {
    for (int i = 0; i < SIZE; i++) large[i] = 1;
}
PUBLIC int locals(void) { return odd * 100 + own * 10 + after; }
PUBLIC void *place(void) { return &exported; }
