/* The program that is made set-uid: prints what it is left with. Its libraries come from its RUNPATH and the cache; evil() is
   defined by a library that must not be loaded. With the argument `descriptors` it ends with 40 and the number of standard
   descriptors that are open. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
int evil(void) __attribute__((weak));
int beside(void) __attribute__((weak));
static int show(struct dl_phdr_info *object, size_t size, void *data) {
    (void)size;
    (void)data;
    printf("object <%s>\n", object->dlpi_name);
    return 0;
}
int main(int argc, char **argv) {
    char line[512];
    if (argc > 1 && strcmp(argv[1], "descriptors") == 0)
        return 40 + (fcntl(0, F_GETFD) >= 0) + (fcntl(1, F_GETFD) >= 0) + (fcntl(2, F_GETFD) >= 0);
    printf("secure %lu uid %d %d evil %d beside %d\n", getauxval(AT_SECURE), (int)getuid(), (int)geteuid(), evil ? evil() : 0, beside ? beside() : 0);
    printf("argc %d <%s>\n", argc, argv[0]);
    for (char **entry = environ; *entry; entry++)
        printf("environment <%s>\n", *entry);
    dl_iterate_phdr(show, 0);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, offset;
        if (sscanf(line, "%lx-%*x %*s %lx", &start, &offset) == 2 && start == getauxval(AT_BASE) && strchr(line, '/'))
            printf("interpreter %s", strchr(line, '/'));
    }
    return 0;
}
