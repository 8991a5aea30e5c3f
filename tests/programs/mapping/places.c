// Where libraries lie, what a filter of mmap's flags thinks of dlopen, and a start with few descriptors.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// Counts objects in the lower 4 GiB, where position-independent ones never are.
static int count_low(struct dl_phdr_info *info, size_t size, void *count) {
    (void)size;
    if (info->dlpi_name[0] != 0) *(int *)count += info->dlpi_addr < 1ul << 32;
    return 0;
}

// The flags that Chromium's RestrictMmapFlags lets pass; of advice, what a malloc and a fork detector of today need.
static int filter(void) {
    unsigned flags = MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE | MAP_FIXED | MAP_DENYWRITE | MAP_LOCKED;
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~flags),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 4),
        // madvise comes here.
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_DONTNEED, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_WIPEONFORK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog whole = {sizeof program / sizeof *program, program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole);
}

int main(int count, char **arguments) {
    if (count < 2) {
        puts("hello");
    } else if (!strcmp(arguments[1], "low")) {
        int low = 0;
        dl_iterate_phdr(count_low, &low);
        printf("%d low\n", low);
    } else if (!strcmp(arguments[1], "filter")) {
        if (filter()) return perror("seccomp"), 2;
        for (int i = 2; i < count; i++) {
            void *handle = dlopen(arguments[i], RTLD_NOW);
            printf("%d %s\n", i, handle ? "opened" : dlerror());
            if (handle && dlclose(handle)) return 3;
        }
    } else if (!strcmp(arguments[1], "few")) {
        struct rlimit four = {4, 4};
        for (int descriptor = 3; descriptor < 1024; descriptor++) close(descriptor);
        if (setrlimit(RLIMIT_NOFILE, &four)) return 2;
        execv(arguments[2], arguments + 2);
        return 3;
    }
    return 0;
}
