/* Weak references that nothing defines are null: a function, a variable, and pointers to both in initialised data. */
#include <stdio.h>
extern int variable __attribute__((weak));
int function(void) __attribute__((weak));
int *volatile pointer = &variable;
int (*volatile function_pointer)(void) = function;
int library_sees(void);
#ifdef LIBRARY
int library_sees(void) { return !!&variable + !!function + !!pointer + !!function_pointer; }
#else
int main(void) {
    int *address = &variable;
    __asm__("" : "+r"(address));
    printf("%d %d %d %d %d\n", address != 0, function != 0, pointer != 0, function_pointer != 0, library_sees());
    return 0;
}
#endif
