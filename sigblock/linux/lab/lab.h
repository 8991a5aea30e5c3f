/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of the kernel patch share: the word, a handler that records,
 * clocks, children.  A test is a function without arguments that runs in a
 * process of its own; CHECK() says what failed and goes on.
 */
#ifndef LAB_H
#define LAB_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../files/include/uapi/linux/sigfastblock.h"
#include <errno.h>
#include <signal.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct test {
	const char *name;
	void (*run)(void);
};

/* The tests of each file, ended by a NULL name. */
extern const struct test protocol_tests[], action_tests[], fault_tests[], process_tests[], thread_tests[];
extern const struct test wait_tests[], tool_tests[], mask_tests[], memory_tests[], security_tests[], storm_tests[];

/* Storms do what issue and README name, not a short part of it. */
extern int full_figures;
extern int failed;
void check_failed(const char *file, int line, const char *what);
#define CHECK(condition)                                             \
	do {                                                         \
		if (!(condition))                                    \
			check_failed(__FILE__, __LINE__, #condition); \
	} while (0)
/* A call that must fail with this error. */
#define FAILS(call, error)                                                                   \
	do {                                                                                 \
		errno = 0;                                                                   \
		if ((call) != -1 || errno != (error))                                        \
			check_failed(__FILE__, __LINE__, #call " must fail with " #error);    \
	} while (0)

/* The word of each thread. */
extern __thread volatile uint32_t word;

/* One instruction each: an interrupt of the own processor cannot split it. */
static inline void add_section(volatile uint32_t *w)
{
	__asm__ volatile("addl $16, %0" : "+m"(*w) : : "memory", "cc");
}

static inline void end_section(volatile uint32_t *w)
{
	__asm__ volatile("subl $16, %0" : "+m"(*w) : : "memory", "cc");
}

static inline int sigfastblock(int command, volatile void *pointer)
{
	return prctl(PR_SIGFASTBLOCK, (long)command, pointer, 0L, 0L);
}

static inline int section_mask(const uint64_t *new, uint64_t *old)
{
	return prctl(PR_SIGFASTBLOCK, (long)PR_SIGFASTBLOCK_MASK, new, old, 0L);
}

static inline void enter(void)
{
	add_section(&word);
}

static inline int leave(void)
{
	end_section(&word);
	return word == SIGFASTBLOCK_PEND ? sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, NULL) : 0;
}

static inline int in_section(void)
{
	return (word & ~SIGFASTBLOCK_FLAGS) != 0;
}

/* SETPTR of the calling thread's word; a failure fails the test. */
void enroll(void);

/* What the recording handler saw; `order` has the value of queued signals, else the number. */
extern volatile int handled, last_signal, last_code, last_value, handled_inside, order[256];
extern volatile pid_t last_thread;
extern void *volatile last_address;
void record(int signal, int flags);
/* A handler of faults: counts, then jumps to `fault_return`. */
extern volatile int faults;
extern sigjmp_buf fault_return;
extern volatile uint32_t word_in_fault;
void catch_fault(int signal);

double now(void);
void spin(double seconds);
void nap(double seconds);
/* Wait at most a guard's time until the condition holds. */
#define WAIT_FOR(condition)                                      \
	do {                                                     \
		double guard_ = now() + 30;                      \
		while (!(condition) && now() < guard_)           \
			;                                        \
		CHECK(condition);                                \
	} while (0)

pid_t thread_id(void);
void raise_here(int signal);
/* A child that after a while sends a signal to a process, or to one thread of it. */
pid_t send_later(double seconds, pid_t process, int signal);
pid_t send_thread_later(double seconds, pid_t process, pid_t thread, int signal);
/* The wait status of a child. */
int reap(pid_t child);
/* Zeroed memory that parent and child share. */
volatile int *shared_memory(void);
/* One anonymous page. */
volatile uint32_t *new_page(int protection);
void write_file(const char *path, const char *text);
/* Runs this program again in another role (main.c); returns only on failure. */
void exec_self(const char *role, const char *argument);
#define EXITED(status, code) (WIFEXITED(status) && WEXITSTATUS(status) == (code))
#define KILLED(status, signal) (WIFSIGNALED(status) && WTERMSIG(status) == (signal))

#endif
