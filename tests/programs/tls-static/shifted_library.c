// The suite raises p_align of this library's PT_TLS to 4096 without moving its p_vaddr.
#include <stdint.h>
__thread char first[64] __attribute__((aligned(16))) = "block";
__thread long second = 17;
__thread long zero[5];
uintptr_t address_of_first(void) { return (uintptr_t)first; }
long contents(void) { return first[0] == 'b' && second == 17 && zero[4] == 0; }
