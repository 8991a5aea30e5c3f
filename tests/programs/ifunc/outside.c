// Calls what no resolver found.
#include <stdio.h>
int call_outside(void);
int main(void) {
    printf("before\n");
    fflush(stdout);
    printf("called %d\n", call_outside());
    return 0;
}
