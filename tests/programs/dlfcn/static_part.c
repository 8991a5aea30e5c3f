// A program and a plug-in that both hold counter.c: shared without RTLD_DEEPBIND, the plug-in's own with it.
#define _GNU_SOURCE
#include "report.h"
int next_count(void);
int main(int count, char **arguments) {
    (void)count;
    next_count();
    next_count();
    void *handle = must_open(arguments[1], RTLD_NOW | (arguments[2] ? RTLD_DEEPBIND : 0));
    int (*plug_in)(void) = (int (*)(void))must_find(handle, "count_of_plug_in");
    printf("%d\n", plug_in());
    printf("%d\n", next_count());
    return 0;
}
