/* launch UID PROGRAM ARGUMENT... -- VARIABLE...: becomes that user, without other groups, and executes the program with
   exactly these environment entries, whatever they look like. UID 0 changes nothing. Started as `launch-closed` it closes the
   standard descriptors first. */
#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int end = 2;
    if (argc < 4)
        return 90;
    int user = atoi(argv[1]);
    while (end < argc && strcmp(argv[end], "--") != 0)
        end++;
    if (end == argc)
        return 91;
    argv[end] = 0;
    if (user && (setgroups(0, 0) || setgid(user) || setuid(user))) {
        perror("launch: cannot change the user (root needed)");
        return 92;
    }
    if (strstr(argv[0], "launch-closed"))
        for (int descriptor = 0; descriptor < 3; descriptor++)
            close(descriptor);
    execve(argv[2], argv + 2, argv + end + 1);
    perror("launch: execve");
    return 93;
}
