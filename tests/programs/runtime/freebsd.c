// fdlopen and dlfunc, which only our loader has, found as a program for FreeBSD would find them if it were linked here. The
// arguments: the library, and a copy of it that is removed while it is open.
#include "../dlfcn/report.h"
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

typedef int (*Function)(void);
static void *(*fdlopen_)(int, int);
static Function (*dlfunc_)(void *, const char *);

__attribute__((visibility("default"))) int asked(void) { return 5; }

int main(int count, char **arguments) {
    (void)count;
    fdlopen_ = (void *(*)(int, int))dlsym(RTLD_DEFAULT, "fdlopen");
    dlfunc_ = (Function(*)(void *, const char *))dlsym(RTLD_DEFAULT, "dlfunc");
    if (!fdlopen_ || !dlfunc_) return puts("not there"), 1;
    printf("the program %d\n", fdlopen_(-1, RTLD_NOW) == dlopen(NULL, RTLD_NOW));
    int file = open(arguments[1], O_RDONLY | O_CLOEXEC);
    void *handle = fdlopen_(file, RTLD_LAZY);
    struct link_map *map = handle;
    printf("by its path %d, the same as by name %d\n", handle && !strcmp(map->l_name, arguments[1]),
           handle == dlopen(arguments[1], RTLD_NOW));
    printf("the descriptor is open %d\n", fcntl(file, F_GETFD) == FD_CLOEXEC);
    printf("dlfunc %d %d\n", dlfunc_(handle, "child_value")(), dlfunc_(RTLD_DEFAULT, "asked")());
    int found = dlfunc_(handle, "nosuch") != NULL;
    printf("not there %d: %d\n", !found, strstr(error_text(), "undefined symbol: nosuch") != NULL);
    printf("next %d\n", dlfunc_(RTLD_NEXT, "strlen") == (Function)dlsym(RTLD_NEXT, "strlen"));
    int gone = open(arguments[2], O_RDONLY | O_CLOEXEC);
    unlink(arguments[2]);
    void *copy = fdlopen_(gone, RTLD_NOW);
    printf("removed: another object %d, %d\n", copy && copy != handle, copy ? ((Function)dlsym(copy, "child_value"))() : 0);
    close(gone);
    printf("closed: %s\n", fdlopen_(gone, RTLD_NOW) ? "a handle" : strstr(error_text(), "Bad"));
    printf("no library: %s\n", fdlopen_(open("/dev/null", O_RDONLY), RTLD_NOW) ? "a handle" : strstr(error_text(), ": ") + 2);
    printf("no mode: %d\n", !fdlopen_(file, 0) && strstr(error_text(), "invalid mode"));
    return 0;
}
