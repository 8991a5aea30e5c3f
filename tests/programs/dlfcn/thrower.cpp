// A plug-in that throws: a standard exception, its own type, through a callback of the program, and one that it catches itself.
#include "thrower.hpp"
#include <cstdio>
Failure::~Failure() = default;
extern "C" void throw_standard(int number) {
    // Not std::to_string: it holds a unique symbol, with which a library stays for ever.
    char text[32];
    std::snprintf(text, sizeof text, "standard %d", number);
    throw std::runtime_error(text);
}
extern "C" void throw_own(int number) { throw Failure(number); }
extern "C" int through(void (*callback)(int), int number) {
    struct Guard {
        int *count;
        ~Guard() { ++*count; }
    };
    static int unwound;
    Guard guard{&unwound};
    if (number < 0) return unwound;
    callback(number);
    return -1;
}
extern "C" int catches(void (*callback)(int), int number) {
    try {
        callback(number);
    } catch (const std::exception &error) {
        return number + 1000;
    }
    return -1;
}
