/* Calls its own code that has text relocations and prints the permissions that code has. */
#include <stdio.h>

extern int start_value(void);

int main(void)
{
    char line[512], permissions[8];
    unsigned long start, end, there = (unsigned long)start_value;
    FILE *maps = fopen("/proc/self/maps", "r");
    printf("%d\n", start_value());
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, permissions) == 3 && start <= there && there < end)
            puts(permissions);
    return 0;
}
