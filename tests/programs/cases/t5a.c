// -DNAME=f -DALIGNMENT=n: f() is the remainder of an aligned thread-local variable, which must be 0.
#include <stdint.h>
__thread char pad_a[1] = {1};
__thread char aligned[8] __attribute__((aligned(ALIGNMENT)));
uintptr_t NAME(void) {
    pad_a[0]++;
    return (uintptr_t)aligned % ALIGNMENT;
}
