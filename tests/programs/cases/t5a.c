// -DNAME=f -DALIGNMENT=n: f() is the remainder of an aligned thread-local variable, which must be 0.
#include "../remainder.h"
// Each library's own: by name all would find the first one's.
static __thread volatile char pad_a[1] = {1};
static __thread volatile char aligned[8] __attribute__((aligned(ALIGNMENT)));
uintptr_t NAME(void) {
    pad_a[0]++;
    return remainder_of(aligned, ALIGNMENT);
}
