// dlsym by RTLD_DEFAULT and RTLD_NEXT, and dlopen by a name that only the library's own search path leads to, from
// constructors and a destructor that end in those calls. The arguments: a library that asks and needs another one with the
// same function, opened for itself alone.
#include "../dlfcn/report.h"

void note(int number) { printf("found in %d\n", number); }

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    (void)count;
    void *handle = must_open(arguments[1], RTLD_NOW | RTLD_LOCAL);
    printf("opened: %s\n", error_text());
    printf("beside %d\n", dlopen("libbeside.so", RTLD_NOW | RTLD_NOLOAD) != NULL);
    dlclose(handle);
    printf("closed: %s\n", error_text());
    return 0;
}
