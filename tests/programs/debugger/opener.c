// Calls what a person may put a breakpoint at.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>

static int none(struct dl_phdr_info *info, size_t size, void *data) { return !(info && size && data); }
int main(void) {
    int data = 0;
    void *handle = dlopen("libm.so.6", RTLD_NOW);
    if (!handle || !dlsym(handle, "sqrt") || dlvsym(handle, "sqrt", "NOSUCH")) return 1;
    dl_iterate_phdr(none, &data);
    return dlclose(handle);
}
