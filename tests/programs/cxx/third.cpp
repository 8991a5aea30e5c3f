// libthird: the outermost library; knows its callees only as function pointers.
#include "shared.hpp"

static Tracked third_static("third static");
thread_local Tracked third_local("third thread_local");
void third_touch() { third_local.touched = 1; }

void third_pass(Kind kind, void (*next)(Kind)) {
    Guard guard("third frame");
    next(kind);
}

void third_call(void (*callback)(void *), void *argument) {
    Guard guard("third frame");
    callback(argument);
}

std::exception_ptr third_keep(void (*next)(Kind), Kind kind) {
    Guard guard("third frame");
    try {
        next(kind);
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}
