// -DLEVEL=n: an indirect function whose resolver calls the next library's indirect function; -DLAST ends the chain.
// Each resolver also needs its own relocated data, the C library's (strlen is indirect itself) and its constructor not.
#include <string.h>
#define NAME2(a, b) a##b
#define NAME(a, b) NAME2(a, b)
#ifndef LAST
int NAME(step_, NEXT)(void);
#endif
static const char *volatile words[] = {"right", "no"};
static int chosen(void) {
#ifdef LAST
    return 1;
#else
    return 1 + NAME(step_, NEXT)();
#endif
}
static int refused(void) { return -100; }
static int (*choose(void))(void) {
#ifndef LAST
    if (NAME(step_, NEXT)() < 1) return refused;
#endif
    return strlen(words[0]) == 5 ? chosen : refused;
}
int NAME(step_, LEVEL)(void) __attribute__((ifunc("choose")));
int (*NAME(pointer_, LEVEL))(void) = NAME(step_, LEVEL);
