// A library that says when it begins and ends, with one function and one variable of its own. -DNAME=x names it; -DNEEDS=y makes it
// call the function of libpart-y.so.
#include <stdio.h>
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#ifdef NEEDS
int JOIN(value_, NEEDS)(void);
#define MORE JOIN(value_, NEEDS)()
#else
#define MORE 0
#endif
int JOIN(variable_, NAME) = 5;
int JOIN(value_, NAME)(void) { return 1 + MORE; }
__attribute__((constructor)) static void begins(void) { puts("+" TEXT(NAME)); }
__attribute__((destructor)) static void ends(void) { puts("-" TEXT(NAME)); }
