// dladdr, dladdr1 and dlinfo about a library that was opened and about the program. Prints facts, no addresses. The argument
// is the library; link with -rdynamic.
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include "report.h"

int marker(void) { return 1; }
int marker_data[4] = {1, 2, 3, 4};
static int hidden_data = 5;

static void address(const char *what, const void *pointer, long offset) {
    Dl_info found = {0};
    int status = dladdr((const char *)pointer + offset, &found) != 0;
    if (!status) {
        printf("%s: not found\n", what);
        return;
    }
    printf("%s: %s %s%+ld\n", what, base(found.dli_fname), found.dli_sname ? found.dli_sname : "(none)",
           found.dli_saddr ? (long)((const char *)pointer + offset - (const char *)found.dli_saddr) : 0);
    const Elf64_Ehdr *header = found.dli_fbase;
    printf("%s: base is an ELF header %d\n", what, !memcmp(header->e_ident, ELFMAG, SELFMAG));
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    (void)count;
    void *handle = must_open(arguments[1], RTLD_NOW);
    char *function = must_find(handle, "which"), *data = must_find(handle, "shared_value");
    address("function", function, 0);
    address("inside a function", function, 1);
    address("data", data, 0);
    address("program's function", marker, 0);
    address("program's data, inside", marker_data, 5);
    address("static data", &hidden_data, 0);
    address("libc", must_find(RTLD_DEFAULT, "abort"), 0);
    address("nowhere", NULL, 16);
    address("stack", &count, 0);

    Dl_info found;
    ElfW(Sym) *symbol = NULL;
    struct link_map *map = NULL;
    printf("dladdr1 symbol %d\n", dladdr1(function, &found, (void **)&symbol, RTLD_DL_SYMENT) != 0);
    printf("symbol of %s: type %d binding %d size>0 %d, value fits %d\n", found.dli_sname, ELF64_ST_TYPE(symbol->st_info), ELF64_ST_BIND(symbol->st_info),
           symbol->st_size > 0, (char *)found.dli_fbase + symbol->st_value == function);
    printf("dladdr1 symbol of static data %d\n", dladdr1(&hidden_data, &found, (void **)&symbol, RTLD_DL_SYMENT) != 0);
    printf("symbol %s\n", symbol || found.dli_sname ? "something" : "none");
    printf("dladdr1 map %d\n", dladdr1(function, &found, (void **)&map, RTLD_DL_LINKMAP) != 0);
    printf("map is the handle %d, name %s\n", (void *)map == handle, base(map->l_name));

    struct link_map *asked = NULL;
    printf("LINKMAP %d", dlinfo(handle, RTLD_DI_LINKMAP, &asked));
    printf(" %d\n", (void *)asked == handle);
    printf("l_addr is where it lies %d, l_ld in it %d\n", asked->l_addr == (ElfW(Addr))found.dli_fbase, !strcmp(object_of(asked->l_ld), base(asked->l_name)));
    int listed = 0;
    for (struct link_map *each = _r_debug.r_map; each; each = each->l_next) listed += each == asked;
    printf("in the debugger's list %d\n", listed);
    Lmid_t space = 77;
    printf("LMID %d", dlinfo(handle, RTLD_DI_LMID, &space));
    printf(" %ld\n", (long)space);
    char origin[4096] = "";
    printf("ORIGIN %d", dlinfo(handle, RTLD_DI_ORIGIN, origin));
    printf(" %s\n", base(origin));
    Dl_serinfo size;
    printf("SERINFOSIZE %d\n", dlinfo(handle, RTLD_DI_SERINFOSIZE, &size));
    Dl_serinfo *paths = malloc(size.dls_size);
    printf("SERINFOSIZE again %d\n", dlinfo(handle, RTLD_DI_SERINFOSIZE, paths));
    printf("SERINFO %d, %u paths\n", dlinfo(handle, RTLD_DI_SERINFO, paths), paths->dls_cnt);
    for (unsigned i = 0; i < paths->dls_cnt; i++) printf("path %s\n", paths->dls_serpath[i].dls_name);
    size_t module = 77;
    printf("TLS_MODID %d", dlinfo(handle, RTLD_DI_TLS_MODID, &module));
    printf(" %s\n", module == 0 ? "none" : module == 77 ? "unset" : "a module");
    void *block = handle;
    printf("TLS_DATA %d", dlinfo(handle, RTLD_DI_TLS_DATA, &block));
    printf(" %s\n", block ? "a block" : "none");
    const ElfW(Phdr) *headers = NULL;
    int number = dlinfo(handle, RTLD_DI_PHDR, &headers);
    printf("PHDR %s, in the library %d\n", number > 2 ? "some" : "too few", !strcmp(object_of(headers), base(arguments[1])));
    if (count > 2) {
        int *variable = must_find(handle, arguments[2]);
        dlinfo(handle, RTLD_DI_TLS_DATA, &block);
        dlinfo(handle, RTLD_DI_TLS_MODID, &module);
        int inside = 0;
        for (int i = 0; i < number; i++)
            if (headers[i].p_type == PT_TLS) inside = (char *)variable >= (char *)block && (char *)variable < (char *)block + headers[i].p_memsz;
        printf("TLS_MODID %s, the variable lies in TLS_DATA %d\n", module ? "set" : "none", inside);
    }
    printf("CONFIGADDR %d", dlinfo(handle, RTLD_DI_CONFIGADDR, origin));
    printf(" %s\n", error_text());
    printf("unknown %d", dlinfo(handle, 99, origin));
    printf(" %s\n", error_text());
    return 0;
}
