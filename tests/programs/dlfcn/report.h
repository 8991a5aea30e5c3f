// What the programs of these suites share: base names, error texts, /proc/self/maps. Nothing here is called by the loader.
#ifndef REPORT_H
#define REPORT_H
// The sources define _GNU_SOURCE.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline const char *base(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "(null)";
}

static inline const char *error_text(void) {
    const char *text = dlerror();
    return text ? text : "(none)";
}

static inline const char *object_of(const void *address) {
    Dl_info found;
    return dladdr(address, &found) ? base(found.dli_fname) : "(no object)";
}

static inline int mapped(const char *name) {
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps) abort();
    while (fgets(line, sizeof line, maps)) {
        line[strcspn(line, "\n")] = 0;
        const char *slash = strrchr(line, '/');
        found |= slash && !strcmp(slash + 1, name);
    }
    fclose(maps);
    return found;
}

// dlopen that must succeed.
static inline void *must_open(const char *file, int mode) {
    void *handle = dlopen(file, mode);
    if (!handle) {
        printf("dlopen %s: %s\n", file, error_text());
        exit(1);
    }
    return handle;
}

// dlsym that must succeed.
static inline void *must_find(void *handle, const char *name) {
    void *address = dlsym(handle, name);
    if (!address) {
        printf("dlsym %s: %s\n", name, error_text());
        exit(1);
    }
    return address;
}
#endif
