// Opens the libraries given as FILE=NUMBER while 8 threads run, and looks at their thread-local data in main, in these threads and in new ones.
#define _GNU_SOURCE
#include "threads.h"

static struct module {
    int (*value)(void), (*misaligned)(void), (*zeros)(void), (*locals)(void);
    void (*fill)(void);
    int first;
} module;

// Right in a thread that sees the module for the first time: the initial values, then what was stored.
static int fresh(int number) {
    (void)number;
    int right = module.zeros() == 0 && module.misaligned() == 0 && module.locals() == 713;
    right &= module.value() == module.first;
    right &= module.value() == module.first + 2;
    module.fill();
    return right && module.locals() == 935;
}
// Right in a thread that has seen it.
static int seen(int number) {
    (void)number;
    return module.locals() == 935 && module.misaligned() == 0 && module.zeros() > 0;
}

int main(int count, char **files) {
    typedef int (*function)(void);
    if (count < 2) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    // One after another through the same steps; the threads exist before each of them is opened.
    for (int i = 1; i < count; i++) {
        char *file = files[i], *number = strrchr(file, '=');
        if (!number) return 2;
        *number++ = 0;
        threads_start();
        void *handle = must_open(file, RTLD_NOW);
        module = (struct module){(function)must_find(handle, "value"), (function)must_find(handle, "misaligned"), (function)must_find(handle, "zeros"),
                                 (function)must_find(handle, "locals"), (void (*)(void))must_find(handle, "fill"), atoi(number)};
        printf("main %d", fresh(0));
        printf(" existing %d", threads_do(fresh));
        printf(" again %d", threads_do(seen));
        printf(" main %d\n", seen(0));
        threads_end();
        printf("new %d\n", threads_new(fresh));
        dlclose(handle);
    }
    return 0;
}
