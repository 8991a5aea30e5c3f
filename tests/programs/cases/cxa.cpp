// The library of cxm.cpp: throws its own type and has a thread_local object.
#include "cxa.hpp"
#include <string>
void thrower(int number) {
    if (number) throw Failure("from lib " + std::to_string(number));
}
static thread_local std::string text = "tlsinit";
std::string &get_text() { return text; }
