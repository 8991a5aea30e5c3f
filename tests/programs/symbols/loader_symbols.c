/* Symbols that ld-linux defines, used as any other: each must be there, in its public version, and be alive. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>
extern void *__libc_stack_end;
extern const unsigned int __rseq_size, __rseq_flags;
extern const ptrdiff_t __rseq_offset;
typedef struct { unsigned long module, offset; } tls_index;
void *__tls_get_addr(tls_index *);
int _dl_find_object(void *, struct dl_find_object *);
static __thread int own = 9;
int main(int argc, char **argv) {
    struct dl_find_object found = {0};
    int status = _dl_find_object((void *)main, &found);
    uintptr_t end = (uintptr_t)__libc_stack_end;
    void *(*get_address)(tls_index *) = __tls_get_addr;
    (void)argc;
    printf("r_debug %d %d %d %d\n", _r_debug.r_version >= 1, _r_debug.r_state == RT_CONSISTENT, _r_debug.r_brk != 0,
           _r_debug.r_map && _r_debug.r_map->l_name[0] == 0);
    printf("r_debug is DT_DEBUG %d\n", ({
        int same = 0;
        for (ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag; entry++)
            same |= entry->d_tag == DT_DEBUG && entry->d_un.d_ptr == (uintptr_t)&_r_debug;
        same;
    }));
    printf("stack end %d\n", end > (uintptr_t)__builtin_frame_address(0) && end < (uintptr_t)argv && *(long *)end == argc);
    printf("rseq %d %u %d\n", __rseq_size != 0, __rseq_flags, __rseq_offset != 0);
    printf("tls %d %d\n", get_address != 0, own);
    printf("find object %d %d\n", status, found.dlfo_link_map == _r_debug.r_map);
    return 0;
}
