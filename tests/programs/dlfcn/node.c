// A library of the scripts: -DNUMBER=n says which. It reports its constructor and destructor and has names of its own and
// names that others define too. -DQUIET leaves the reports out, -DCALLS=f adds a function that calls f, -DALSO=f defines f
// too, -DWEAK=f defines it weakly, -DATEXIT records a function by atexit.
#include <stdio.h>
#include <stdlib.h>
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#ifndef QUIET
__attribute__((constructor)) static void up(void) { printf("+" TEXT(NUMBER) "\n"); }
__attribute__((destructor)) static void down(void) { printf("-" TEXT(NUMBER) "\n"); }
#endif

int which(void) { return NUMBER; }
int ask_which(void) { return which(); }
int JOIN(own_, NUMBER)(void) { return NUMBER; }
int shared_value = NUMBER;
int JOIN(value_, NUMBER) = NUMBER;
#ifdef CALLS
int CALLS(void);
int call_other(void) { return CALLS(); }
#endif
#ifdef ALSO
int ALSO(void) { return NUMBER; }
#endif
#ifdef WEAK
__attribute__((weak)) int WEAK(void) { return NUMBER; }
#endif
#ifdef ATEXIT
static void at_exit(void) { printf("atexit " TEXT(NUMBER) "\n"); }
__attribute__((constructor)) static void record(void) { atexit(at_exit); }
#endif
