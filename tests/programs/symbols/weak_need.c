/* Needs g() and, weakly, f(): prints what each answers, 0 for an f() that is not there. */
#include <stdio.h>
int f(void) __attribute__((weak));
int g(void);
int main(void) {
    printf("%d %d\n", f ? f() : 0, g());
    return 0;
}
