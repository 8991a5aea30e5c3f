// Prints what an indirect function returns whose resolver depends on a thread-local variable.
#include <stdio.h>
int call_work(void);
int main(void) {
    printf("call_work %d\n", call_work());
    return 0;
}
