/* A program, or a library with -DNAME=f, that calls one function of each library it is linked with: -DFIRST and -DSECOND. */
#include <stdio.h>
int FIRST(void);
#ifdef SECOND
int SECOND(void);
#else
#define SECOND() 0
#endif
#ifdef NAME
int NAME(void) { return FIRST() + SECOND(); }
#else
int main(void) {
    printf("%d\n", FIRST() + SECOND());
    return 0;
}
#endif
