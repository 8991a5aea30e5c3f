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

// What a child calls of <dlfcn.h>. ThreadSanitizer's functions of these names take locks of its own, which threads that are not in
// the child have left held (a child hung in its dlopen, at LibIgnore's lock). So there a child goes past them, and its memory
// accesses are not watched.
static struct {
    int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    void *(*open)(const char *, int);
    int (*close)(void *);
} loader = {dl_iterate_phdr, dlopen, dlclose};
#ifdef __SANITIZE_THREAD__
#define UNWATCHED __attribute__((no_sanitize("thread")))
#else
#define UNWATCHED
#endif
static inline void go_past_sanitizer(void) {
    void *library = must_open("libc.so.6", RTLD_NOW);
    loader.iterate = (int (*)(int (*)(struct dl_phdr_info *, size_t, void *), void *))must_find(library, "dl_iterate_phdr");
    loader.open = (void *(*)(const char *, int))must_find(library, "dlopen");
    loader.close = (int (*)(void *))must_find(library, "dlclose");
}

// An alarm that no handler of the parent's gets, by system calls alone: it ends a child that hangs.
UNWATCHED static inline void limit_child(unsigned seconds) {
    struct { void *handler; unsigned long flags, restorer, mask; } action = {0};
    unsigned long none = 0;
    syscall(SYS_rt_sigaction, SIGALRM, &action, NULL, 8);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
    syscall(SYS_alarm, seconds);
}

UNWATCHED static inline int count_object(struct dl_phdr_info *info, size_t size, void *count) {
    if (size < sizeof *info || !info->dlpi_phdr || !info->dlpi_name) _exit(31);
    ++*(int *)count;
    return 0;
}

// Set where the child may be inside a dlclose of its own thread: then what it closes is left to that one.
static int nested;

// Iterates, binds, opens. Nothing of it may allocate with malloc. What other threads had begun to unload may go meanwhile.
UNWATCHED static inline int child_work(const char *plugin, int objects) {
    int seen = 0;
    loader.iterate(count_object, &seen);
    if (seen < objects) return 1;
    // Slots that nobody has gone through.
    if (bound_20(1) != 21 || bound_21(1) != 22 || bound_22(1) != 23) return 2;
    for (int round = 0; round < 2; round++) {
        void *handle = loader.open(plugin, round ? RTLD_NOW : RTLD_LAZY);
        if (!handle) return 3;
        int (*value)(void) = (int (*)(void))dlsym(handle, "child_value");
        if (!value) return 3;
        int first = value();
        if ((first != 50 && !(nested && first == 70)) || value() != first + 10) return 4;
        int with = 0;
        loader.iterate(count_object, &with);
        if (with <= objects) return 5;
        if (dlsym(handle, "nosuch") || !dlerror()) return 6;
        if (loader.close(handle)) return 7;
        if (!nested && loader.open(plugin, RTLD_NOW | RTLD_NOLOAD)) return 8;
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
UNWATCHED static inline int one_child(Way way, const char *plugin, int objects, unsigned seconds) {
    pid_t child = way();
    if (child < 0) return -1;
    if (child == 0) {
        limit_child(seconds);
        syscall(SYS_exit_group, child_work(plugin, objects));
    }
    int status = status_of(child);
    if (terminal >= 0) close(terminal);
    terminal = -1;
    return status;
}
#endif
