// Registers handlers of its own; says when its destructor runs.
#include <stdio.h>
#include <stdlib.h>
static int last;
static void first_handler(void) { printf("handler of %d\n", last); }
static void second_handler(void) { puts("handler of 2"); }
// One more handler: which one depends on the number.
void registers(int number) {
    if (number == 2) {
        atexit(second_handler);
    } else {
        last = number;
        atexit(first_handler);
    }
}
__attribute__((destructor)) static void ends(void) { puts("destructor"); }
