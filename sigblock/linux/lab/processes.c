// SPDX-License-Identifier: GPL-2.0-only
/* exec, fork, vfork, posix_spawn, clone: who inherits the registration, what happens to what is held. */
#include "lab.h"
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>

static void exec_forgets(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		enroll();
		enter();
		exec_self("--execd", NULL);
		_exit(98);
	}
	status = reap(child);
	CHECK(EXITED(status, 0));
}

/* What is held when exec succeeds acts on the new program. */
static void exec_delivers(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		enroll();
		enter();
		raise_here(SIGUSR1);
		exec_self("--execd", NULL);
		_exit(98);
	}
	status = reap(child);
	CHECK(KILLED(status, SIGUSR1));
}

static void failing_exec_keeps(void)
{
	record(SIGUSR1, 0);
	enroll();
	enter();
	FAILS(execl("/nonexistent", "x", (char *)NULL), ENOENT);
	raise_here(SIGUSR1);
	CHECK(handled == 0 && word == 0x11);
	leave();
	CHECK(handled == 1);
}

static void fork_inherits(void)
{
	int status;
	pid_t child;

	record(SIGUSR1, 0);
	enroll();
	enter();
	raise_here(SIGUSR1);
	CHECK(word == 0x11);
	child = fork();
	if (!child) {
		/* registered, in the section, nothing pending */
		FAILS(sigfastblock(PR_SIGFASTBLOCK_SETPTR, &word), EBUSY);
		CHECK(word == 0x11);
		leave();
		CHECK(handled == 0 && word == 0);
		enter();
		raise_here(SIGUSR1);
		CHECK(handled == 0);
		leave();
		CHECK(handled == 1);
		_exit(failed);
	}
	status = reap(child);
	CHECK(EXITED(status, 0));
	CHECK(handled == 0 && word == 0x11);
	leave();
	CHECK(handled == 1);
}

static void vfork_inherits(void)
{
	volatile int registered = 0, early = -1, late = -1;
	int status;
	pid_t child;

	record(SIGUSR1, 0);
	enroll();
	child = vfork();
	if (!child) {
		registered = sigfastblock(PR_SIGFASTBLOCK_SETPTR, &word) == -1 && errno == EBUSY;
		enter();
		raise_here(SIGUSR1);
		early = handled;
		leave();
		late = handled;
		_exit(0);
	}
	status = reap(child);
	CHECK(EXITED(status, 0));
	CHECK(registered && early == 0 && late == 1 && word == 0);
}

static void spawn_inside(void)
{
	char *arguments[] = { "ktest", "--execd", NULL }, *environment[] = { NULL };
	int status;
	pid_t child;

	enroll();
	enter();
	CHECK(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environment) == 0);
	status = reap(child);
	CHECK(EXITED(status, 0));
	leave();
	CHECK(word == 0);
}

static int enroll_for_itself(void *pointer)
{
	*(volatile int *)pointer = 1 + (sigfastblock(PR_SIGFASTBLOCK_SETPTR, pointer) == 0);
	return 0;
}

/* Shares the memory and runs beside its parent: does not inherit. */
static void clone_with_memory(void)
{
	static char stack[65536];
	static volatile int result __attribute__((aligned(64)));
	int status;
	pid_t child;

	enroll();
	child = clone(enroll_for_itself, stack + sizeof(stack), CLONE_VM | SIGCHLD, (void *)&result);
	CHECK(child > 0);
	status = reap(child);
	CHECK(EXITED(status, 0) && result == 2);
	FAILS(sigfastblock(PR_SIGFASTBLOCK_SETPTR, &word), EBUSY);
}

/* A copy of the memory but a thread area of its own: the word is elsewhere, does not inherit. */
static void clone_with_thread_area(void)
{
	volatile int *shared = shared_memory();
	unsigned long area;
	pid_t child;

	enroll();
	__asm__ volatile("mov %%fs:0, %0" : "=r"(area));
	child = syscall(SYS_clone, CLONE_SETTLS | SIGCHLD, 0L, 0L, 0L, area);
	if (!child) {
		shared[0] = 1 + (sigfastblock(PR_SIGFASTBLOCK_SETPTR, &word) == 0);
		_exit(0);
	}
	reap(child);
	CHECK(shared[0] == 2);
}

const struct test process_tests[] = {
	{ "exec_forgets", exec_forgets },
	{ "exec_delivers", exec_delivers },
	{ "failing_exec_keeps", failing_exec_keeps },
	{ "fork_inherits", fork_inherits },
	{ "vfork_inherits", vfork_inherits },
	{ "spawn_inside", spawn_inside },
	{ "clone_with_memory", clone_with_memory },
	{ "clone_with_thread_area", clone_with_thread_area },
	{ NULL, NULL },
};
