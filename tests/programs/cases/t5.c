// Alignment of static TLS blocks of four libraries with an odd one between them, in the main thread and eight others.
#include <pthread.h>
#include "../remainder.h"
#include <stdio.h>
uintptr_t a64(void), a256(void), a128(void);
char odd(void);
static __thread char own[4] __attribute__((aligned(512)));
static void *check(void *unused) {
    (void)unused;
    uintptr_t remainder = a64() | a256() | a128() | remainder_of(own, 512);
    if (odd() != 3) remainder |= 1;
    return (void *)remainder;
}
int main(void) {
    uintptr_t bad = (uintptr_t)check(0);
    for (int i = 0; i < 8; i++) {
        pthread_t id;
        void *result;
        if (pthread_create(&id, 0, check, 0) || pthread_join(id, &result)) return 2;
        bad |= (uintptr_t)result;
    }
    printf("misaligned %#lx\n", (unsigned long)bad);
    return bad != 0;
}
