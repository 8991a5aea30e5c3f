// Loading while the process ends: an atexit handler, a destructor of the program and one of a library open, use and close
// libraries; what is still open is finalised after all that.
#define _GNU_SOURCE
#include "report.h"
static void *kept;
static void use(const char *who) {
    void *handle = dlopen("./close/lib32.so", RTLD_NOW);
    printf("%s: %s\n", who, handle ? "opened" : error_text());
    if (!handle) return;
    printf("%s: %d\n", who, ((int (*)(void))must_find(handle, "own_32"))());
    dlclose(handle);
}
static void handler(void) { use("handler"); }
__attribute__((destructor)) static void destructor(void) {
    use("destructor");
    if (dlclose(kept)) printf("%s\n", error_text());
    printf("closed one, mapped %d\n", mapped("lib35.so"));
}
int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    kept = must_open("./close/lib35.so", RTLD_NOW);
    must_open("./close/lib31.so", RTLD_NOW);
    atexit(handler);
    use("main");
    return 0;
}
