// -DALIGNMENT=n -DODD=m: a library with an initialised variable of odd size, an aligned one, and zeroed ones, so that
// blocks of several libraries do not fall on round addresses by luck. check_<n>() returns 0 if all is as the file says,
// and leaves its variables dirty, so that a reused block that is not initialised again is noticed.
#include "../remainder.h"
#define NAME2(a, b) a##b
#define NAME(a, b) NAME2(a, b)
#ifndef MODEL
#define MODEL "global-dynamic"
#endif
#define LOCAL static __thread __attribute__((tls_model(MODEL)))

int NAME(check_, ALIGNMENT)(void);

LOCAL char odd[ODD] = {1, [ODD - 1] = 3};
LOCAL volatile char aligned[8] __attribute__((aligned(ALIGNMENT))) = {7};
LOCAL volatile char zero[3 * ODD + 40];
LOCAL volatile char zero_aligned[8] __attribute__((aligned(ALIGNMENT)));
// Relocated contents: an address inside the image of the block.
LOCAL void *volatile address = (void *)&NAME(check_, ALIGNMENT);

int NAME(check_, ALIGNMENT)(void) {
    int wrong = 0;
    volatile char *first = odd;
    if (first[0] != 1 || first[ODD - 1] != 3) wrong |= 1;
    if (remainder_of(aligned, ALIGNMENT) || remainder_of(zero_aligned, ALIGNMENT)) wrong |= 2;
    if (aligned[0] != 7 || aligned[7] != 0) wrong |= 4;
    for (unsigned i = 0; i < sizeof zero; i++)
        if (zero[i]) wrong |= 8;
    for (unsigned i = 0; i < sizeof zero_aligned; i++)
        if (zero_aligned[i]) wrong |= 16;
    if (address != (void *)&NAME(check_, ALIGNMENT)) wrong |= 32;
    for (unsigned i = 0; i < sizeof zero; i++) zero[i] = (char)0xff;
    for (unsigned i = 0; i < sizeof zero_aligned; i++) zero_aligned[i] = (char)0xff;
    first[0] = first[ODD - 1] = aligned[0] = aligned[7] = 99;
    address = 0;
    return wrong;
}
