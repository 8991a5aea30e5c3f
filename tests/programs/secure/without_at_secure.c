/* without_at_secure PROGRAM ARGUMENT... -- VARIABLE...: executes the program with its auxiliary vector changed at the exec
   stop, before the interpreter's first instruction: the tag AT_SECURE becomes AT_IGNORE, as on a system that does not have
   it. Ends as the program does. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int end = 1, status;
    while (end < argc && strcmp(argv[end], "--") != 0)
        end++;
    if (end == argc)
        return 91;
    argv[end] = 0;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execve(argv[1], argv + 1, argv + end + 1);
        _exit(93);
    }
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return 94;
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, child, 0, &registers))
        return 95;
    /* argc, argv, 0, environment, 0, vector */
    unsigned long at = registers.rsp;
    at += 8 * (ptrace(PTRACE_PEEKDATA, child, at, 0) + 2);
    while (ptrace(PTRACE_PEEKDATA, child, at, 0) != 0)
        at += 8;
    at += 8;
    int found = 0;
    for (;; at += 16) {
        errno = 0;
        long tag = ptrace(PTRACE_PEEKDATA, child, at, 0);
        if (errno || tag == AT_NULL)
            break;
        if (tag == AT_SECURE) {
            found = 1;
            if (ptrace(PTRACE_POKEDATA, child, at, AT_IGNORE))
                return 96;
        }
    }
    if (!found)
        return 97;
    ptrace(PTRACE_DETACH, child, 0, 0);
    if (waitpid(child, &status, 0) != child)
        return 98;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
