// Which entries into the loader are sections: for each the number of sections that it took, as the loader counts them
// (LD_DEBUG=sigblock), and whether it did what it is for.
#define _GNU_SOURCE
#include "../semantics/section.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long before;
static unsigned long now(void) {
    struct sigblock_counts counts = {0, 0};
    if (sigblock_counts) sigblock_counts(&counts);
    return counts.sections;
}
static void tell(const char *what, int works) {
    unsigned long taken = now() - before;
    printf("%s %lu %s\n", what, taken, works ? "works" : "fails");
    fflush(stdout);
    before = now();
}
static int callback(struct dl_phdr_info *object, size_t size, void *number) {
    (void)object;
    (void)size;
    ++*(int *)number;
    return 0;
}
static int (*thread_value)(void);
static void *grows(void *unused) {
    (void)unused;
    before = now();
    tell("first use of a thread's block", thread_value() == 5);
    tell("second use of a thread's block", thread_value() == 7);
    return 0;
}
extern int bound(void);
extern int resolved(void);

int main(void) {
    int number = 0;
    Dl_info found;
    struct link_map *map = 0;
    struct dl_find_object object;
    pthread_t thread;
    // Bound before, so that only the entry itself is counted.
    now();
    tell("warm", 1);
    printf("%s\n", dlerror() ? "error" : "none");
    dl_iterate_phdr(callback, &number);
    dlclose(dlopen("./libplugin.so", RTLD_NOW));
    dladdr(&before, &found);
    dladdr1(&before, &found, (void **)&map, RTLD_DL_LINKMAP);
    dlsym(RTLD_DEFAULT, "printf");
    dlvsym(RTLD_DEFAULT, "printf", "GLIBC_2.2.5");
    dlinfo(dlopen(0, RTLD_NOW), RTLD_DI_LINKMAP, &map);
    _dl_find_object(&before, &object);
    before = now();
    tell("nothing", 1);
    number = 0;
    int status = dl_iterate_phdr(callback, &number);
    tell("dl_iterate_phdr", status == 0 && number > 3);
    void *handle = dlopen("./libplugin.so", RTLD_NOW);
    tell("dlopen", handle != 0);
    void *symbol = dlsym(handle, "plugin_value");
    tell("dlsym", symbol != 0);
    symbol = dlsym(RTLD_NEXT, "printf");
    tell("dlsym next", symbol != 0);
    symbol = dlvsym(RTLD_DEFAULT, "printf", "GLIBC_2.2.5");
    tell("dlvsym", symbol != 0);
    status = dladdr(&before, &found);
    tell("dladdr", status != 0);
    status = dladdr1(&before, &found, (void **)&map, RTLD_DL_LINKMAP);
    tell("dladdr1", status != 0);
    status = dlinfo(handle, RTLD_DI_LINKMAP, &map);
    tell("dlinfo", status == 0 && map);
    status = _dl_find_object(&before, &object);
    tell("_dl_find_object", status == 0);
    status = dlclose(handle);
    tell("dlclose", status == 0);
    symbol = dlopen("./nosuch.so", RTLD_NOW);
    tell("dlopen of nothing", symbol == 0);
    int value = bound();
    tell("first call", value == 7);
    value = bound();
    tell("second call", value == 7);
    value = resolved();
    tell("first call of an indirect function", value == 8);
    handle = dlopen("./libthread.so", RTLD_NOW);
    thread_value = (int (*)(void))dlsym(handle, "value");
    pthread_create(&thread, 0, grows, 0);
    pthread_join(thread, 0);
    before = now();
    for (int i = 0; i < 10; i++) {
        enter();
        enter();
        leave();
        leave();
    }
    tell("ten sections of the program's own, nested", 1);
    return 0;
}
