// libfirst: home of the exception types, throws them.
#include "shared.hpp"
#include <cstring>
#include <unistd.h>

void say(const char *who, const char *what) {
    char line[256];
    size_t n = strlen(who), m = strlen(what);
    memcpy(line, who, n);
    line[n] = ' ';
    memcpy(line + n + 1, what, m);
    line[n + m + 1] = '\n';
    if (write(1, line, n + m + 2) < 0) _exit(99);
}

Failure::~Failure() { say("Failure", "released"); }
const char *Failure::what() const noexcept { return "failure"; }
DeepFailure::~DeepFailure() {}
const char *DeepFailure::what() const noexcept { return "deep failure"; }

static Tracked first_static("first static");
thread_local Tracked first_local("first thread_local");
void first_touch() { first_local.touched = 1; }

void first_raise(Kind kind) {
    Guard guard("first frame");
    switch (kind) {
    case DEEP: throw DeepFailure(11);
    case SHALLOW: throw Failure(12);
    case NUMBER: throw 13;
    case INLINE_DERIVED: throw InlineDerived();
    }
}
