/* Prints what a library's call of f() answers, and with -DDEFINE=n what our own definition of it does. */
#include <stdio.h>
int caller(void);
#ifdef DEFINE
int f(void) { return DEFINE; }
#else
int f(void);
#endif
int main(void) {
    printf("%d %d\n", caller(), f());
    return 0;
}
