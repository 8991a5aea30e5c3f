// dl_iterate_phdr: what it lists, its counters, its TLS data, an early end, dlopen from the callback's caller; and
// _dl_find_object for the same objects.
#define _GNU_SOURCE
#include <link.h>
#include "report.h"

struct seen {
    unsigned long long adds, subs;
    int objects, found;
    const char *name;
    struct dl_phdr_info info;
    size_t size;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    struct seen *seen = data;
    seen->objects++;
    seen->adds = info->dlpi_adds;
    seen->subs = info->dlpi_subs;
    seen->size = size;
    if (seen->name && !strcmp(base(info->dlpi_name), seen->name)) {
        seen->found++;
        seen->info = *info;
    }
    return 0;
}

static struct seen look(const char *name) {
    struct seen seen = {.name = name};
    if (dl_iterate_phdr(visit, &seen)) abort();
    return seen;
}

static int stop(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size;
    return ++*(int *)data == 2 ? 7 : 0;
}

static int nested(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size;
    *(int *)data += look("libc.so.6").found;
    return 1;
}

static int list(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    // The vDSO and the loader's own name differ from system to system.
    if (!strstr(info->dlpi_name, "vdso") && !strstr(info->dlpi_name, "/ld") ) printf("object %s\n", base(info->dlpi_name));
    return 0;
}

static void find(const char *what, void *address) {
    struct dl_find_object result = {0};
    if (_dl_find_object(address, &result)) {
        printf("%s: no object\n", what);
        return;
    }
    Dl_info found;
    struct link_map *map;
    dladdr1(address, &found, (void **)&map, RTLD_DL_LINKMAP);
    printf("%s: map %d, around the address %d, eh_frame %d, in the object %d\n", what, result.dlfo_link_map == map,
           (char *)result.dlfo_map_start <= (char *)address && (char *)address < (char *)result.dlfo_map_end, result.dlfo_eh_frame != NULL,
           result.dlfo_eh_frame && !strcmp(object_of(result.dlfo_eh_frame), object_of(address)));
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    (void)count;
    const char *file = arguments[1], *name = base(file);
    dl_iterate_phdr(list, NULL);
    struct seen before = look(name);
    printf("size %zu, adds at least the objects %d\n", before.size, before.adds - before.subs >= (unsigned long long)before.objects - 1);
    void *handle = must_open(file, RTLD_NOW);
    struct seen with = look(name);
    printf("opened: objects %+d, adds %+lld, subs %+lld, listed %d\n", with.objects - before.objects, with.adds - before.adds, with.subs - before.subs, with.found);
    printf("name %s\n", with.info.dlpi_name);
    printf("headers %s, in the library %d\n", with.info.dlpi_phnum > 2 ? "some" : "few", !strcmp(object_of(with.info.dlpi_phdr), name));
    printf("TLS module %s, data %s\n", with.info.dlpi_tls_modid ? "yes" : "no", with.info.dlpi_tls_data ? "yes" : "no");
    int *variable = dlsym(handle, "thread_value");
    if (variable) {
        with = look(name);
        printf("after access: the variable is at the block's begin %d\n", (void *)variable == with.info.dlpi_tls_data);
    }
    void *function = must_find(handle, "which");
    find("library", function);
    find("program", main);
    find("libc", must_find(RTLD_DEFAULT, "getpid"));
    find("stack", &count);
    find("null", NULL);
    must_open(file, RTLD_NOW);
    struct seen again = look(name);
    printf("opened again: objects %+d, adds %+lld, subs %+lld\n", again.objects - with.objects, again.adds - with.adds, again.subs - with.subs);
    dlclose(handle);
    dlclose(handle);
    struct seen after = look(name);
    printf("closed: objects %+d, adds %+lld, subs %+lld, listed %d\n", after.objects - again.objects, after.adds - again.adds, after.subs - again.subs, after.found);
    find("closed library", function);
    int calls = 0, inner = 0;
    printf("stopped with %d", dl_iterate_phdr(stop, &calls));
    printf(" after %d\n", calls);
    printf("nested %d", dl_iterate_phdr(nested, &inner));
    printf(" found %d\n", inner);
    return 0;
}
