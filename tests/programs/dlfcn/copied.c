// A non-PIE program that holds a copy of a library's variable (R_X86_64_COPY); a plug-in opened later must use that copy, and
// so must dlsym.
#define _GNU_SOURCE
#include "report.h"
extern int shared_value;
int main(void) {
    shared_value += 100;
    void *handle = must_open("./order/libuser.so", RTLD_NOW);
    int (*read)(void) = (int (*)(void))must_find(handle, "read_value");
    printf("%d %d\n", read(), *(int *)must_find(dlopen(NULL, RTLD_NOW), "shared_value"));
    printf("%s\n", must_find(dlopen(NULL, RTLD_NOW), "shared_value") == (void *)&shared_value ? "the copy" : "another");
    return 0;
}
