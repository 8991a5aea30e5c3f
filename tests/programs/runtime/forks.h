// Every way to copy a process, and what its child must be able to do. A child says by its status how far it came.
#ifndef FORKS_H
#define FORKS_H
#define _GNU_SOURCE
#include "../dlfcn/report.h"
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t _Fork(void);
extern int bound_20(int), bound_21(int), bound_22(int);

enum { RIGHT = 42, HUNG = 1000 + SIGALRM };

// clone(2) as the kernel has it, past everything: no function of the C library's is called.
static inline pid_t raw_clone(void) {
    register long stack_and_rest __asm__("r10") = 0;
    register long tls __asm__("r8") = 0;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_clone), "D"((long)SIGCHLD), "S"(0L), "d"(0L), "r"(stack_and_rest), "r"(tls)
                     : "rcx", "r11", "memory");
    return result;
}
static inline pid_t raw_fork(void) { return syscall(SYS_fork); }

typedef pid_t (*Way)(void);

// An alarm that no handler of the parent's gets, by system calls alone: it ends a child that hangs.
static inline void limit_child(unsigned seconds) {
    struct { void *handler; unsigned long flags, restorer, mask; } action = {0};
    unsigned long none = 0;
    syscall(SYS_rt_sigaction, SIGALRM, &action, NULL, 8);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
    syscall(SYS_alarm, seconds);
}

static inline int count_object(struct dl_phdr_info *info, size_t size, void *count) {
    if (size < sizeof *info || !info->dlpi_phdr || !info->dlpi_name) _exit(31);
    ++*(int *)count;
    return 0;
}

// Set where the child may be inside a dlclose of its own thread: then what it closes is left to that one.
static int nested;

// Iterates, binds, opens. Nothing of it may allocate with malloc. What other threads had begun to unload may go meanwhile.
static inline int child_work(const char *plugin, int objects) {
    int seen = 0;
    dl_iterate_phdr(count_object, &seen);
    if (seen < objects) return 1;
    // Slots that nobody has gone through.
    if (bound_20(1) != 21 || bound_21(1) != 22 || bound_22(1) != 23) return 2;
    for (int round = 0; round < 2; round++) {
        void *handle = dlopen(plugin, round ? RTLD_NOW : RTLD_LAZY);
        if (!handle) return 3;
        int (*value)(void) = (int (*)(void))dlsym(handle, "child_value");
        if (!value) return 3;
        int first = value();
        if ((first != 50 && !(nested && first == 70)) || value() != first + 10) return 4;
        int with = 0;
        dl_iterate_phdr(count_object, &with);
        if (with <= objects) return 5;
        if (dlsym(handle, "nosuch") || !dlerror()) return 6;
        if (dlclose(handle)) return 7;
        if (!nested && dlopen(plugin, RTLD_NOW | RTLD_NOLOAD)) return 8;
    }
    return RIGHT;
}

static inline int status_of(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) != child)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// The terminal of a child that has one, which needs it to its end.
static __thread int terminal = -1;

// One child: its status.
static inline int one_child(Way way, const char *plugin, int objects, unsigned seconds) {
    pid_t child = way();
    if (child < 0) return -1;
    if (child == 0) {
        limit_child(seconds);
        _exit(child_work(plugin, objects));
    }
    int status = status_of(child);
    if (terminal >= 0) close(terminal);
    terminal = -1;
    return status;
}
#endif
