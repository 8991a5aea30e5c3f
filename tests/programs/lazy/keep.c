// The library of the register probe: a spy behind an indirect function whose resolver uses every vector register, and
// functions of clang's register-keeping conventions. Built by clang with AVX-512 off: only the resolver, by assembly,
// touches wide registers, at the level it is told.
#include "state.h"

extern struct state spy_seen __attribute__((visibility("hidden")));
extern int spy_level __attribute__((visibility("hidden")));
extern void spy_chosen(void) __attribute__((visibility("hidden")));
int resolver_runs;

void set_spy_level(int value) { spy_level = value; }
const struct state *get_spy_seen(void) { return &spy_seen; }
int get_resolver_runs(void) { return resolver_runs; }

static void (*choose(void))(void) {
    resolver_runs++;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw"))
        __asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
                         "vpternlogd $0xff,%%zmm\\n,%%zmm\\n,%%zmm\\n\n.endr\n"
                         ".irp n,0,1,2,3,4,5,6,7\nkxnorq %%k\\n,%%k\\n,%%k\\n\n.endr\n" ::: "memory");
    if (__builtin_cpu_supports("avx2"))
        __asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nvpcmpeqd %%ymm\\n,%%ymm\\n,%%ymm\\n\n.endr\n" ::: "memory");
    else
        __asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\npcmpeqd %%xmm\\n,%%xmm\\n\n.endr\n" ::: "memory");
    return spy_chosen;
}
void spy_ifunc(void) __attribute__((ifunc("choose")));

// Each uses enough registers that the convention, and not luck, is what keeps the caller's values.
#define DIRTY __asm__ volatile("xor %%eax,%%eax\nxor %%ecx,%%ecx\nxor %%edx,%%edx\nxor %%esi,%%esi\nxor %%edi,%%edi\n" \
                               "xor %%r8d,%%r8d\nxor %%r9d,%%r9d\nxor %%r10d,%%r10d\n" ::: \
                               "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "cc")
__attribute__((preserve_most)) void keep_most(void) { DIRTY; }
__attribute__((preserve_all)) void keep_all(void) {
    DIRTY;
    __asm__ volatile("pxor %%xmm0,%%xmm0\npxor %%xmm7,%%xmm7\npxor %%xmm15,%%xmm15\n" ::: "xmm0", "xmm7", "xmm15");
}
