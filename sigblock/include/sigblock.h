/* Sections of a thread in which no handler of an asynchronous signal runs: fast sigblock.
 *
 * ld-elf.so.1 and libsigblock export these functions. A program that may run without either declares them weak and looks. A section may
 * not sleep, end its thread, or leave by a jump; a handler that came inside runs at the end of the outermost section.
 */
#ifndef SIGBLOCK_H
#define SIGBLOCK_H

#include <signal.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The word: a flag says that a signal waits, the rest counts sections. Only its own thread may write it, and only by single
 * read-modify-write instructions. */
#define SIGBLOCK_PENDING 0x1u
#define SIGBLOCK_FLAGS 0xfu
#define SIGBLOCK_STEP 0x10u

struct sigblock_counts {
	uint64_t sections; /* outermost sections, if LD_DEBUG=sigblock counts them */
	uint64_t held;     /* signals that waited for a section's end; kernel: sections in which some came */
};

void sigblock_enter(void);
void sigblock_leave(void);
/* The calling thread's part in sections begins with its first one, or by sigblock_register, for a thread that writes its word by
 * itself; it ends with the thread, or by sigblock_release: signals that the thread still holds go to the others. Each
 * returns 0, or -1 and errno (ENOMEM; EBUSY: inside a section). */
int sigblock_register(void);
int sigblock_release(void);
/* The calling thread's word. */
uint32_t *sigblock_word(void);
/* "kernel", "user", "sigprocmask" or "off". */
const char *sigblock_backend(void);
/* Which signals the sections of this process hold; null asks only. What can never be held is left out. Returns
 * 0; -1 and errno EPERM where the kernel holds them and a seccomp filter stands before it. */
int sigblock_mask(const sigset_t *hold, sigset_t *old);
void sigblock_counts(struct sigblock_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
