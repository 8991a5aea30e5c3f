// Initial exec in libraries that are opened: what fits into the surplus, what does not, and that a failed load gives back all.
//   fit FILE     opens it, uses it in main, 8 existing and 8 new threads, closes nothing
//   refuse FILE  dlopen must fail; prints the error with each number as #
//   rounds FILE  1000 failed loads that take a part of the surplus each
//   fill PREFIX  opens PREFIX0.so, PREFIX1.so ... until one fails; prints how many fitted
#define _GNU_SOURCE
#include <ctype.h>
#include "threads.h"
static int (*value)(void), (*misaligned)(void), (*zeros)(void);
static int first;
static int step(int number) {
    (void)number;
    int right = zeros() == 0 && misaligned() == 0;
    return right && value() == first;
}
static void print_error(void) {
    char text[1024];
    snprintf(text, sizeof text, "%s", error_text());
    // Every number becomes one #.
    char *to = text;
    for (char *from = text; *from; from++)
        if (!isdigit((unsigned char)*from)) *to++ = *from;
        else if (to == text || to[-1] != '#') *to++ = '#';
    *to = 0;
    printf("%s\n", text);
}
int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    threads_start();
    for (int i = 1; i + 1 < count; i += 2) {
        const char *word = arguments[i], *file = arguments[i + 1];
        if (!strcmp(word, "fit")) {
            void *handle = must_open(file, RTLD_NOW);
            value = (int (*)(void))must_find(handle, "value");
            misaligned = (int (*)(void))must_find(handle, "misaligned");
            zeros = (int (*)(void))must_find(handle, "zeros");
            first = 6;
            int here = step(0);
            int there = threads_do(step);
            printf("main %d existing %d new %d\n", here, there, threads_new(step));
        } else if (!strcmp(word, "refuse")) {
            if (dlopen(file, RTLD_NOW)) printf("opened\n");
            else print_error();
        } else if (!strcmp(word, "rounds")) {
            int failed = 0;
            for (int round = 0; round < 1000; round++) failed += dlopen(file, RTLD_NOW) == NULL;
            printf("failed %d\n", failed);
        } else {
            int opened = 0;
            for (;; opened++) {
                char name[256];
                snprintf(name, sizeof name, "%s%d.so", file, opened);
                if (!dlopen(name, RTLD_NOW)) break;
            }
            printf("%s %d\n", opened > 0 ? "fitted some" : "fitted none", opened < 64);
            if (strcmp(word, "fill-quietly")) print_error();
        }
    }
    threads_end();
    return 0;
}
