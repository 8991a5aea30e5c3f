// A library to stop in: in its constructor, and in a function that the program calls.
#include <unistd.h>
static int ready;
static __attribute__((constructor)) void library_constructor(void) { ready = 1; }
__attribute__((noinline)) int library_function(int x) { return x + ready; }
int library(void) {
    if (write(1, "in the library\n", 15) != 15) return 0;
    return library_function(0);
}
