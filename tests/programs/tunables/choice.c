// Prints which implementation of each string function the C library's resolvers chose, as a distance from a function that
// has only one, and what the C library knows of restartable sequences.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>
#include <sys/rseq.h>

#define SHOW(f) printf("%s %#lx\n", #f, (unsigned long)f - (unsigned long)atoi)
int main(void) {
    SHOW(memcpy);
    SHOW(memmove);
    SHOW(memset);
    SHOW(memcmp);
    SHOW(memchr);
    SHOW(memrchr);
    SHOW(strlen);
    SHOW(strnlen);
    SHOW(strcmp);
    SHOW(strncmp);
    SHOW(strcasecmp);
    SHOW(strchr);
    SHOW(strrchr);
    SHOW(strcpy);
    SHOW(stpcpy);
    SHOW(strcat);
    SHOW(strspn);
    SHOW(strstr);
    SHOW(wcslen);
    SHOW(wmemset);
    SHOW(strcspn);
    printf("rseq size %u flags %u\n", __rseq_size, __rseq_flags);
    const char *tunables = getenv("GLIBC_TUNABLES");
    printf("GLIBC_TUNABLES %s\n", tunables ? tunables : "unset");
    return 0;
}
