// A frame between, and a constructor, which is called by the loader at start or in dlopen.
#include <stdio.h>

void frames(void) __attribute__((weak));

__attribute__((noinline)) void library_call(void (*function)(void)) {
    function();
    __asm__ volatile(""); // no tail call: the frame stays
}

__attribute__((constructor)) void library_constructor(void) {
    puts("in a library's constructor");
    if (frames)
        frames();
    __asm__ volatile("");
}
