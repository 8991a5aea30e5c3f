/* Prints the last component of the name of every loaded object, in the order of the lookup scope. The vDSO's name is
   chosen by the loader and the loader's own file is a different one in each run: both are left out. */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
int shared(void) __attribute__((weak));
static int show(struct dl_phdr_info *object, size_t size, void *data) {
    const char *name = strrchr(object->dlpi_name, '/');
    (void)size;
    (void)data;
    name = name ? name + 1 : object->dlpi_name;
    if (strncmp(name, "ld", 2) != 0 && strncmp(name, "linux-vdso", 10) != 0)
        printf("%s\n", *name ? name : "program");
    return 0;
}
int main(void) {
    dl_iterate_phdr(show, 0);
    if (shared)
        printf("shared from %d\n", shared());
    return 0;
}
