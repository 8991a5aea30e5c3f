// Every request of dlinfo(3), by its name and by its number, about the program and a library with thread-local storage. The
// argument is the library's path. Prints facts, no addresses.
#include "../dlfcn/report.h"
#include <link.h>

static void *handle;

static void asked(const char *name, int request, void *argument) {
    int result = dlinfo(handle, request, argument);
    if (result < 0) printf("%s: %s\n", name, error_text());
    else printf("%s: %s\n", name, result ? "a count" : "0");
}

static void all(const char *what) {
    union {
        long words[512];
        char text[4096];
        Dl_serinfo paths;
    } room = {{0}};
    struct link_map *map = NULL;
    Lmid_t space = 7;
    size_t module = 7;
    void *data = &room;
    const ElfW(Phdr) *headers = NULL;
    printf("%s\n", what);
    asked("RTLD_DI_LMID", RTLD_DI_LMID, &space);
    printf("  base %d\n", space == LM_ID_BASE);
    asked("RTLD_DI_LINKMAP", RTLD_DI_LINKMAP, &map);
    printf("  the handle %d, named %s\n", map == handle, base(map->l_name));
    asked("RTLD_DI_CONFIGADDR", RTLD_DI_CONFIGADDR, &room);
    asked("RTLD_DI_SERINFOSIZE", RTLD_DI_SERINFOSIZE, &room);
    printf("  some %d\n", room.paths.dls_cnt > 3 && room.paths.dls_size < sizeof room);
    asked("RTLD_DI_SERINFO", RTLD_DI_SERINFO, &room);
    printf("  first is absolute %d\n", room.paths.dls_serpath[0].dls_name[0] == '/');
    asked("RTLD_DI_ORIGIN", RTLD_DI_ORIGIN, &room);
    printf("  %s\n", base(room.text));
    asked("RTLD_DI_PROFILENAME", RTLD_DI_PROFILENAME, &room);
    asked("RTLD_DI_PROFILEOUT", RTLD_DI_PROFILEOUT, &room);
    asked("RTLD_DI_TLS_MODID", RTLD_DI_TLS_MODID, &module);
    asked("RTLD_DI_TLS_DATA", RTLD_DI_TLS_DATA, &data);
    printf("  module %d, data %d\n", module != 0, data != NULL);
#ifndef RTLD_DI_PHDR
#define RTLD_DI_PHDR 11
#endif
    int count = dlinfo(handle, RTLD_DI_PHDR, &headers);
    printf("RTLD_DI_PHDR: headers %d\n", count > 3 && headers && headers->p_type != 0);
    asked("0", 0, &room);
    asked("12", 12, &room);
    asked("-1", -1, &room);
}

int main(int count, char **arguments) {
    (void)count;
    handle = dlopen(NULL, RTLD_NOW);
    all("the program");
    handle = must_open(arguments[1], RTLD_NOW);
    all("a library");
    int (*value)(void) = (int (*)(void))must_find(handle, "child_value");
    value();
    all("a library in use");
    handle = (void *)8;
    return 0;
}
