// Throws through three libraries in every way a program can, then lets thread-local and static objects end.
// The transcript is compared with the one under ld-linux, and its last counting line with a written-down number.
#include "shared.hpp"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <pthread.h>
#include <typeinfo>

static int caught;
static Tracked main_static("main static");
thread_local Tracked main_local("main thread_local");

static void attempt(const char *title, Kind kind, void (*next)(Kind)) {
    say("--", title);
    try {
        third_pass(kind, next);
        say("main", "nothing came");
    } catch (const DeepFailure &deep) {
        say("main caught by DeepFailure&", deep.what());
        caught += deep.code;
    } catch (const std::exception &base) {
        const Failure *failure = dynamic_cast<const Failure *>(&base);
        say("main caught by std::exception&", base.what());
        caught += failure ? failure->code : 100000;
    } catch (int number) {
        say("main caught", "int");
        caught += number;
    } catch (const Inline &object) {
        say("main caught by Inline&", typeid(object) == typeid(InlineDerived) ? "an InlineDerived" : "another type");
        caught += object.value;
    }
}

static void by_base(Kind kind) {
    say("--", "only the base class is named");
    try {
        third_pass(kind, second_pass);
    } catch (Failure &failure) {
        say("main caught by Failure&", typeid(failure) == typeid(DeepFailure) ? "a DeepFailure" : "another type");
        caught += failure.code;
    }
}

static void throws_back(void *argument) {
    Guard guard("callback frame");
    caught += *static_cast<int *>(argument);
    throw Failure(3);
}

static int comparison(const void *, const void *) { throw Failure(4); }

static void callbacks() {
    int value = 2;
    say("--", "out of a callback");
    try {
        third_call(throws_back, &value);
    } catch (Failure failure) { // by value: copied across libraries
        say("main caught by value", failure.what());
        caught += failure.code;
    }
    say("--", "out of a callback of the C library");
    int numbers[4] = {3, 1, 2, 0};
    try {
        qsort(numbers, 4, sizeof *numbers, comparison);
    } catch (const Failure &failure) {
        caught += failure.code;
    }
}

static std::exception_ptr carried;

static void *thread(void *) {
    say("--", "a thread");
    // Touched in another order than linked: destructors run in reverse order of construction.
    second_touch();
    main_local.touched = 1;
    first_touch();
    third_touch();
    attempt("inside the thread", DEEP, second_rethrow);
    carried = third_keep(second_pass, SHALLOW);
    return nullptr;
}

static void *untouched_thread(void *) {
    say("--", "a thread that touches nothing");
    return nullptr;
}

static void at_exit() { say("--", "atexit handler of main"); }

int main() {
    atexit(at_exit);
    attempt("deep, passed", DEEP, second_pass);
    attempt("shallow, passed", SHALLOW, second_pass);
    attempt("number, passed", NUMBER, second_pass);
    attempt("inline type, passed", INLINE_DERIVED, second_pass);
    attempt("deep, thrown again", DEEP, second_rethrow);
    attempt("number, thrown again", NUMBER, second_rethrow);
    attempt("translated", DEEP, second_translate);
    by_base(DEEP);
    callbacks();
    third_touch();
    first_touch();
    main_local.touched = 1;
    for (void *(*body)(void *) : {thread, untouched_thread, thread}) {
        pthread_t id;
        if (pthread_create(&id, nullptr, body, nullptr) != 0 || pthread_join(id, nullptr) != 0) return 2;
    }
    say("--", "carried out of the thread");
    try {
        std::rethrow_exception(carried);
    } catch (const Failure &failure) {
        caught += failure.code;
    }
    carried = nullptr;
    char line[32];
    snprintf(line, sizeof line, "caught %d", caught);
    say("--", line);
    second_touch();
    return 0;
}
