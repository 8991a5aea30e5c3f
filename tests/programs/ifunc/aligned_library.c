// A resolver that needs an aligned stack (movaps) and says so.
#include <stdint.h>
static int aligned(void) { return 16; }
static int misaligned(void) { return 8; }
__attribute__((noinline)) static int check(void) {
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    return frame % 16 == 0; // the frame pointer, after the return address and the saved pointer
}
static int (*choose(void))(void) {
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    return frame % 16 == 0 && check() ? aligned : misaligned;
}
int stack(void) __attribute__((ifunc("choose")));
int late(void) __attribute__((ifunc("choose")));
int (*stack_pointer)(void) = stack;
