// A library that finds a function of another by RTLD_DEFAULT and keeps the pointer.
#define _GNU_SOURCE
#include <dlfcn.h>
static int (*found)(void);
int find(void) {
    found = (int (*)(void))dlsym(RTLD_DEFAULT, "own_35");
    return found ? found() : -1;
}
int again(void) { return found(); }
