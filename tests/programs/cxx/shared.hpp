// What the program and its three libraries agree on. Calls go main -> third -> second -> first.
#pragma once
#include <exception>

// Writes one line to standard output by write(2), so that it is seen from destructors that run after stdio is gone.
void say(const char *who, const char *what);

// Key function in first.cpp: its type information and vtable have one home, and three other objects refer to them.
struct Failure : std::exception {
    explicit Failure(int code) : code(code) {}
    ~Failure() override;
    const char *what() const noexcept override;
    int code;
};

struct DeepFailure : Failure {
    explicit DeepFailure(int code) : Failure(code) {}
    ~DeepFailure() override;
    const char *what() const noexcept override;
};

// No key function: every object has its own weak copy of the type information, which must compare equal.
struct Inline {
    virtual ~Inline() {}
    int value = 7;
};
struct InlineDerived : Inline {};

// Says who is destroyed while a stack is unwound.
struct Guard {
    const char *who;
    explicit Guard(const char *who) : who(who) {}
    ~Guard() { say(who, "unwound"); }
};

// Says when a static or thread-local object begins and ends.
struct Tracked {
    const char *who;
    int touched = 0;
    explicit Tracked(const char *who) : who(who) { say(who, "constructed"); }
    ~Tracked() { say(who, touched ? "destroyed, touched" : "destroyed, untouched"); }
};

enum Kind { DEEP, SHALLOW, NUMBER, INLINE_DERIVED };
void first_raise(Kind kind);                     // first.cpp: throws
void second_pass(Kind kind);                     // second.cpp: lets it through
void second_rethrow(Kind kind);                  // second.cpp: catches and throws again
void second_translate(Kind kind);                // second.cpp: catches and throws another
void third_pass(Kind kind, void (*next)(Kind));  // third.cpp
void third_call(void (*callback)(void *), void *argument);
std::exception_ptr third_keep(void (*next)(Kind), Kind kind);
void first_touch();
void second_touch();
void third_touch();
