/* Calls code that has text relocations and prints the permissions its pages have afterwards. */
#include <stdio.h>

int program_value = 37;
extern int text_value(void);
extern char *text_page(void);

int main(void)
{
    char line[512], permissions[8];
    unsigned long start, end, there = (unsigned long)text_page();
    FILE *maps = fopen("/proc/self/maps", "r");
    printf("%d\n", text_value());
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, permissions) == 3 && start <= there && there < end)
            puts(permissions);
    return 0;
}
