/* A library that tells which of several files of the same name was loaded: -DNUMBER=n sets the answer, -DNAME=f the
   name of its function. */
#ifndef NAME
#define NAME which
#endif
int NAME(void) { return NUMBER; }
