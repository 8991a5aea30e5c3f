/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Blocking of signals by a word in user memory, the protocol of FreeBSD's
 * sigfastblock(2).  See Documentation/userspace-api/sigfastblock.rst.
 */
#ifndef _UAPI_LINUX_SIGFASTBLOCK_H
#define _UAPI_LINUX_SIGFASTBLOCK_H

/*
 * prctl(PR_SIGFASTBLOCK, command, ...).  An option of prctl() and not a
 * system call: a kernel without it answers EINVAL, where a system call number
 * of an out-of-tree patch sooner or later means something else.
 */
#define PR_SIGFASTBLOCK			0x53464231

/* (SETPTR, word, 0, 0): register the word of the calling thread */
#define PR_SIGFASTBLOCK_SETPTR		1
/* (UNBLOCK, 0, 0, 0): the word is PEND: clear it, deliver what was held */
#define PR_SIGFASTBLOCK_UNBLOCK		2
/* (UNSETPTR, 0, 0, 0): forget the word */
#define PR_SIGFASTBLOCK_UNSETPTR	3
/* (MASK, new or NULL, old or NULL, 0): what the process's sections hold */
#define PR_SIGFASTBLOCK_MASK		4

/* The word: a flag of the kernel, its reserved bits, the unit of the count */
#define SIGFASTBLOCK_PEND		0x1
#define SIGFASTBLOCK_FLAGS		0xf
#define SIGFASTBLOCK_INC		0x10

#endif /* _UAPI_LINUX_SIGFASTBLOCK_H */
