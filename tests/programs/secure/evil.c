/* A library that must not be loaded into a set-uid program: says so at once. */
#include <unistd.h>
int evil(void) { return 666; }
int beside(void) { return 667; }
__attribute__((constructor)) static void start(void) {
    if (write(2, "EVIL\n", 5) < 0)
        _exit(66);
}
