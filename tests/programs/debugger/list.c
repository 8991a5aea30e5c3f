// Prints what a debugger reads: r_debug through the program's own DT_DEBUG, and the list of loaded objects.
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

extern ElfW(Dyn) _DYNAMIC[];
extern const char __ehdr_start[];
int library(void);

int main(void) {
    struct r_debug *debug = 0;
    for (ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_DEBUG) debug = (struct r_debug *)d->d_un.d_ptr;
    if (!debug) return puts("DT_DEBUG is 0"), 1;
    printf("version %d\n", debug->r_version >= 1);
    printf("state %s\n", debug->r_state == RT_CONSISTENT ? "consistent" : "changing");
    printf("break %#lx\n", (unsigned long)debug->r_brk - (unsigned long)debug->r_ldbase);
    int count = 0, back = 1, dynamic = 1, base = 0, main_right = 0;
    struct link_map *previous = 0;
    for (struct link_map *map = debug->r_map; map && count < 100; map = map->l_next, count++) {
        printf("object %s\n", map->l_name);
        back &= map->l_prev == previous;
        base += map->l_addr == debug->r_ldbase;
        previous = map;
        // Every object's own dynamic section: its first tag is a known one, and DT_STRTAB lies above the object's base.
        int strings = 0;
        for (ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) strings |= d->d_tag == DT_STRTAB;
        dynamic &= strings;
        if (map->l_ld == _DYNAMIC) {
            const ElfW(Ehdr) *header = (const void *)__ehdr_start;
            main_right = !map->l_prev && map->l_addr == (header->e_type == ET_DYN ? (unsigned long)__ehdr_start : 0);
        }
    }
    printf("links back %d, dynamic sections %d, program first %d\n", back, dynamic, main_right);
    printf("objects at r_ldbase %d\n", base);
    return library() - 1;
}
