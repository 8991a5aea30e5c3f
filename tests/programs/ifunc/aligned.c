// 16 twice if the stack was aligned in resolvers that run at start, and lazily.
#include <stdio.h>
int late(void);
extern int (*stack_pointer)(void);
int main(void) {
    int lazily = late();
    printf("at start %d lazily %d\n", stack_pointer(), lazily);
    return 0;
}
