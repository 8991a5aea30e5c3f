// libsecond: passes exceptions on, throws them again, or throws others in their place.
#include "shared.hpp"

static Tracked second_static("second static");
thread_local Tracked second_local("second thread_local");
void second_touch() { second_local.touched = 1; }

void second_pass(Kind kind) {
    Guard guard("second frame");
    first_raise(kind);
}

void second_rethrow(Kind kind) {
    Guard guard("second frame");
    try {
        first_raise(kind);
    } catch (Failure &failure) {
        failure.code += 100;
        say("second", "throws the Failure again");
        throw;
    } catch (...) {
        say("second", "throws something unknown again");
        throw;
    }
}

void second_translate(Kind kind) {
    Guard guard("second frame");
    try {
        first_raise(kind);
    } catch (const std::exception &cause) {
        say("second caught", cause.what());
        throw 1000;
    }
}
