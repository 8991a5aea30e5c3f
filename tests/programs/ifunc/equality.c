// A pointer to an indirect function is the same in the program and in its library, also where the program was built
// without PIC and has a canonical PLT entry for it. -DDEFINES: the program defines it.
#include <stdio.h>
int named(void);
void *library_address(void);
int library_call(void);
#ifdef DEFINES
static int chosen(void) { return 42; }
static int (*choose(void))(void) { return chosen; }
int named(void) __attribute__((ifunc("choose")));
#endif
int (*data)(void) = named;
int main(void) {
    printf("calls %d %d %d\n", named(), library_call(), data());
#ifdef DEFINES
    // bfd (PIE) and mold make of `named` here an address in the program's own PLT, which no loader can change.
    printf("equal %d\n", (void *)data == library_address());
#else
    printf("equal %d %d\n", (void *)named == library_address(), (void *)data == library_address());
#endif
    return 0;
}
