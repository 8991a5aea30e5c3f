// Prints what its own procedure linkage slot of `target` holds before and after the first call, as distances from its
// own first byte ("base"), and where the library says `target` is. The suite knows from the file where the PLT lies.
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

extern const char __ehdr_start[];
extern ElfW(Dyn) _DYNAMIC[];
int target(int);
unsigned long address_of_target(void);

static unsigned long *slot_of(const char *name) {
    unsigned long base = 0;
    const ElfW(Ehdr) *header = (const void *)__ehdr_start;
    if (header->e_type == ET_DYN) base = (unsigned long)__ehdr_start;
    const ElfW(Rela) *rela = 0;
    const ElfW(Sym) *symbols = 0;
    const char *strings = 0;
    unsigned long size = 0;
    for (ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
        // Hosting glibc means that pointers of the dynamic section are relocated in place, as ld-linux does.
        if (d->d_tag == DT_JMPREL) rela = (const void *)d->d_un.d_ptr;
        if (d->d_tag == DT_PLTRELSZ) size = d->d_un.d_val;
        if (d->d_tag == DT_SYMTAB) symbols = (const void *)d->d_un.d_ptr;
        if (d->d_tag == DT_STRTAB) strings = (const void *)d->d_un.d_ptr;
    }
    for (unsigned long i = 0; i < size / sizeof *rela; i++)
        if (!strcmp(strings + symbols[ELF64_R_SYM(rela[i].r_info)].st_name, name))
            return (unsigned long *)(base + rela[i].r_offset);
    return 0;
}

int main(void) {
    unsigned long *slot = slot_of("target");
    if (!slot) return puts("no slot"), 3;
    unsigned long base = (unsigned long)__ehdr_start;
    unsigned long before = *(volatile unsigned long *)slot;
    int answer = target(41);
    unsigned long after = *(volatile unsigned long *)slot;
    unsigned long definition = address_of_target();
    printf("before %#lx %s\n", before - base, before == definition ? "definition" : "other");
    printf("after %s\n", after == definition ? "definition" : "other");
    printf("answer %d again %d\n", answer, target(1));
    return 0;
}
