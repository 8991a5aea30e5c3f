// backtrace() and backtrace_symbols() from every kind of place. Frames of the loader, and of what the C library puts before it
// in dlopen, are told as one line, because which they are is its own affair. So is where the code lies that a handler returns to.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

void library_call(void (*function)(void));

__attribute__((noinline)) void frames(void) {
    void *addresses[64];
    int count = backtrace(addresses, 64);
    char **symbols = backtrace_symbols(addresses, count);
    int in_loader = 0;
    for (int i = 0; i < count; i++) {
        // mov $15, %rax; syscall: rt_sigreturn(2), in the bytes that debuggers know.
        if (!memcmp(addresses[i], "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9)) {
            puts("  a signal's frame");
            in_loader = 0;
            continue;
        }
        char *end = strstr(symbols[i], " [");
        if (end)
            *end = 0;
        char *place = strchr(symbols[i], '(');
        if (place)
            *place = 0;
        char *name = strrchr(symbols[i], '/');
        name = name ? name + 1 : symbols[i];
        int loader = !strcmp(name, "ld") || !strncmp(name, "ld-linux", 8);
        if (in_loader && !strcmp(name, "libc.so.6"))
            continue;
        if (!loader)
            printf("  %s(%s\n", name, place ? place + 1 : "");
        else if (!in_loader)
            puts("  the loader");
        in_loader = loader;
    }
    free(symbols);
    fflush(stdout);
}

void handler(int number) { frames(); }

void *thread(void *argument) {
    frames();
    return NULL;
}

__attribute__((constructor)) void constructor(void) {
    puts("in a constructor");
    frames();
}

int main(void) {
    puts("through a library");
    library_call(frames);
    puts("in a handler");
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    puts("in a thread");
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    puts("through a plug-in");
    void *handle = dlopen("libplugin.so", RTLD_NOW);
    if (!handle)
        puts(dlerror());
    else
        ((void (*)(void (*)(void)))dlsym(handle, "library_call"))(frames);
    puts("in the vDSO");
    void *address = (char *)getauxval(AT_SYSINFO_EHDR) + 0x40;
    char **symbols = backtrace_symbols(&address, 1);
    puts(strstr(symbols[0], "linux-vdso.so.1(") ? "  linux-vdso.so.1" : symbols[0]);
    return 0;
}
