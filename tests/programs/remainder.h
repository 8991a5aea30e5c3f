// The remainder of an address, computed when the program runs: a compiler knows what an object's alignment should be and
// would answer 0 by itself.
#ifndef REMAINDER_H
#define REMAINDER_H
#include <stdint.h>
static inline uintptr_t remainder_of(const volatile void *pointer, uintptr_t divisor) {
    uintptr_t address = (uintptr_t)pointer;
    __asm__("" : "+r"(address));
    return address % divisor;
}
#endif
