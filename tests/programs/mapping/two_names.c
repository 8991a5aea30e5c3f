/* With -DLIBRARY a library that says when it is constructed; else a program that needs it under two names. */
#include <stdio.h>
#include <string.h>

#ifdef LIBRARY
static int count;
__attribute__((constructor)) static void construct(void) { puts("constructed"); }
int first(void) { return ++count; }
int second(void) { return ++count; }
#else
extern int first(void), second(void);

int main(void)
{
    char line[512];
    int mappings = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char offset[16];
        if (sscanf(line, "%*s %*s %15s", offset) == 1 && !strcmp(offset, "00000000") && strstr(line, "two_names/"))
            mappings++;
    }
    int one = first(), two = second();
    printf("%d %d\nmapped from offset 0: %d\n", one, two, mappings);
    return 0;
}
#endif
