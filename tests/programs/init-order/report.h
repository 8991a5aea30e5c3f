// What an initialiser says: whether the stack was aligned on entry to it, and the arguments and environment it was given.
// Compiled with frame pointers: on entry rsp + 8 is a multiple of 16, and so is the frame pointer after it was pushed.
#pragma once
#include "say.h"
static __attribute__((unused)) unsigned long length_of(const char *text) {
    unsigned long n = 0;
    while (text[n]) n++;
    return n;
}
static __attribute__((unused)) void say_strings(char **strings) {
    for (; *strings; strings++) {
        say_bytes(" [", 2);
        say_bytes(*strings, length_of(*strings));
        say_bytes("]", 1);
    }
}
#define STACK(name) \
    do { \
        if ((unsigned long)__builtin_frame_address(0) % 16) SAY(name ": stack misaligned"); else SAY(name); \
    } while (0)
#define GIVEN(name, argc, argv, envp) \
    do { \
        STACK(name); \
        char digit = (char)('0' + argc); \
        say_bytes(" ", 1); \
        say_bytes(&digit, 1); \
        say_strings(argv + 1); \
        say_bytes(" |", 2); \
        say_strings(envp); \
        say_bytes("\n", 1); \
    } while (0)
