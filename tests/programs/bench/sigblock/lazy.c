// Calls every function of a generated library once through its procedure linkage table, which binds it, and then all once more.
// `call_all` is generated beside it; COUNT says how many functions there are, function N of which adds N.
#define _GNU_SOURCE
#include "measure.h"

long call_all(void);

int main(int argument_count, char **arguments) {
    long count = count_argument(argument_count, arguments);
    print_backend();
    // What the clocks and printf need is bound by now.
    struct phase start = phase_start();
    phase_end(start, "nothing", 1);
    start = phase_start();
    long first = call_all();
    phase_end(start, "first", count);
    start = phase_start();
    long second = call_all();
    phase_end(start, "second", count);
    if (first != count * (count - 1) / 2 || second != first) {
        fprintf(stderr, "sums %ld and %ld\n", first, second);
        return 1;
    }
    return 0;
}
