/* Prints everything that a program is handed at its start, without addresses: arguments, environment, auxiliary vector,
   stack, names. However it was started, the same program must print the same. -DSTATIC for a program without interpreter. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
uintptr_t entry_stack __attribute__((visibility("hidden")));
void probe(void) __attribute__((visibility("hidden")));
/* The entry point: notes the stack pointer, then goes where the entry point would have been. */
__asm__(".text\n.globl probe\n.hidden probe\n.type probe, @function\n"
        "probe: endbr64\n mov %rsp, entry_stack(%rip)\n jmp _start\n.size probe, . - probe");
static __thread int thread_local_value = 3;

/* The last component of the file that is mapped at this address, first page. */
static void print_file_at(uintptr_t address) {
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    const char *name = address ? "nothing" : "none";
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, offset;
        if (sscanf(line, "%lx-%*x %*s %lx", &start, &offset) == 2 && start == address && offset == 0 && strrchr(line, '/')) {
            line[strcspn(line, "\n")] = 0;
            name = strrchr(line, '/') + 1;
            break;
        }
    }
    printf("AT_BASE file: %s\n", name);
    if (maps)
        fclose(maps);
}

int main(int argc, char **argv) {
    char command[64] = "";
    printf("argc %d\n", argc);
    for (int n = 0; n < argc; n++)
        printf("argv[%d] <%s>\n", n, argv[n]);
    printf("argv ends %d\n", argv[argc] == 0);
    printf("stack %d %d %d %d\n", (int)(entry_stack % 16), *(long *)entry_stack == argc, (char **)(entry_stack + 8) == argv,
           argv + argc + 1 == environ);
    char **entry = environ;
    for (; *entry; entry++)
        printf("environment <%s>\n", *entry);
    printf("auxiliary vector:");
    for (ElfW(auxv_t) *vector = (ElfW(auxv_t) *)(entry + 1); vector->a_type != AT_NULL; vector++)
        printf(" %lu", (unsigned long)vector->a_type);
    printf("\nAT_PHDR %d\n", getauxval(AT_PHDR) == (uintptr_t)&__ehdr_start + __ehdr_start.e_phoff);
    printf("AT_PHNUM %d AT_PHENT %lu\n", getauxval(AT_PHNUM) == __ehdr_start.e_phnum, getauxval(AT_PHENT));
    printf("AT_ENTRY %d\n", getauxval(AT_ENTRY) == (uintptr_t)probe);
    printf("AT_EXECFN <%s>\n", (char *)getauxval(AT_EXECFN));
    printf("AT_SECURE %lu AT_FLAGS %lu AT_PAGESZ %lu\n", getauxval(AT_SECURE), getauxval(AT_FLAGS), getauxval(AT_PAGESZ));
    print_file_at(getauxval(AT_BASE));
    printf("name <%s> <%s>\n", program_invocation_name, program_invocation_short_name);
    FILE *comm = fopen("/proc/self/comm", "r");
    if (comm && fgets(command, sizeof command, comm))
        printf("comm %s", command);
    printf("thread-local %d\n", thread_local_value);
    return argc;
}
