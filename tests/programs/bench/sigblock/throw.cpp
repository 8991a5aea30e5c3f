// Throws and catches COUNT exceptions through 1 frame and a fifth of that through 10, each frame with an object to destroy. Linked
// with LLVM's unwinder, which asks dl_iterate_phdr for every frame.
#include "measure.h"

namespace {

struct Error {
    long value;
};

struct Guard {
    volatile long *destroyed;
    ~Guard() { *destroyed = *destroyed + 1; }
};

__attribute__((noinline)) long descend(int depth, volatile long *destroyed) {
    if (depth <= 1) throw Error{7};
    Guard guard{destroyed};
    long result = descend(depth - 1, destroyed);
    // Keeps the call from becoming a jump.
    asm volatile("" : "+r"(result));
    return result + 1;
}

void measure(const char *name, int depth, long count, bool print) {
    volatile long destroyed = 0;
    long sum = 0;
    phase start = phase_start();
    for (long i = 0; i < count; i++) {
        try {
            descend(depth, &destroyed);
        } catch (const Error &error) {
            sum += error.value;
        }
    }
    if (print) phase_end(start, name, count);
    if (sum != 7 * count || destroyed != (depth - 1) * count) {
        fprintf(stderr, "%s: caught %ld, destroyed %ld\n", name, sum, destroyed);
        exit(1);
    }
}

}  // namespace

int main(int argument_count, char **arguments) {
    long count = count_argument(argument_count, arguments);
    print_backend();
    // Binds and touches what is used.
    measure("warm", 10, 20, false);
    measure("depth-1", 1, count, true);
    measure("depth-10", 10, count / 5, true);
    return 0;
}
