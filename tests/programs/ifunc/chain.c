// Resolvers along a chain of three libraries; 3 + 3 if all ran after what they need was ready.
#include <stdio.h>
int step_1(void);
extern int (*pointer_1)(void);
int main(void) {
    printf("chain %d\n", step_1() + pointer_1());
    return 0;
}
