/* Prints the permissions of the main thread's stack and of a new thread's, before and after (with a library) a call into it. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#ifdef LIBRARY
int library_function(void) { return 3; }
#else
extern int library_function(void);

static void *report(void *name)
{
    char line[512], permissions[8];
    unsigned long start, end, here = (unsigned long)line;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, permissions) == 3 && start <= here && here < end)
            printf("%s: %s\n", (char *)name, permissions);
    if (maps)
        fclose(maps);
    return 0;
}

int main(void)
{
    pthread_t thread;
    report("main thread");
    if (pthread_create(&thread, 0, report, "new thread"))
        return 2;
    pthread_join(thread, 0);
    return library_function() - 3;
}
#endif
