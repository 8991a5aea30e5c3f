// A library that looks up names itself, so that RTLD_DEFAULT and RTLD_NEXT are seen from it. Each function answers with the
// base name of the object that the symbol lies in, or with the error.
#define _GNU_SOURCE
#include "report.h"

static const char *from(void *handle, const char *name) {
    dlerror();
    void *address = dlsym(handle, name);
    return address ? object_of(address) : error_text();
}
const char *ask_default(const char *name) { return from(RTLD_DEFAULT, name); }
const char *ask_next(const char *name) { return from(RTLD_NEXT, name); }
const char *ask_opened(const char *file) {
    void *handle = dlopen(file, RTLD_NOW);
    if (!handle) return error_text();
    // The name belongs to the object and goes with it.
    static char object[256];
    snprintf(object, sizeof object, "%s", object_of(must_find(handle, "which")));
    dlclose(handle);
    return object;
}
