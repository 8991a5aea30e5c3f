// SPDX-License-Identifier: GPL-2.0-only
/* The fourth command: which signals the sections of a process hold. */
#include "lab.h"
#include <pthread.h>
#include <sys/wait.h>

#define BIT(signal) (1ull << ((signal) - 1))
#define ALL (~(BIT(SIGKILL) | BIT(SIGSTOP)))

static void mask_command(void)
{
	uint64_t old = 0, new = BIT(SIGUSR1) | BIT(SIGKILL) | BIT(SIGSTOP);

	CHECK(section_mask(NULL, &old) == 0 && old == ALL);
	CHECK(section_mask(&new, &old) == 0 && old == ALL);
	/* KILL and STOP are taken out */
	CHECK(section_mask(NULL, &old) == 0 && old == BIT(SIGUSR1));
	FAILS(prctl(PR_SIGFASTBLOCK, (long)PR_SIGFASTBLOCK_MASK, &new, &old, 8L), EINVAL);
	FAILS(section_mask((uint64_t *)8, &old), EFAULT);
	CHECK(section_mask(NULL, &old) == 0 && old == BIT(SIGUSR1));
	new = ALL;
	CHECK(section_mask(&new, NULL) == 0);
	/* a bad `old` is noticed after the change */
	new = BIT(SIGUSR2);
	FAILS(section_mask(&new, (uint64_t *)8), EFAULT);
	CHECK(section_mask(NULL, &old) == 0 && old == BIT(SIGUSR2));
	/* the same place for both */
	new = ALL;
	CHECK(section_mask(&new, &new) == 0 && new == BIT(SIGUSR2));
	CHECK(section_mask(NULL, NULL) == 0);
	CHECK(section_mask(NULL, &old) == 0 && old == ALL);
}

static void only_masked_signals_wait(void)
{
	uint64_t mask = BIT(SIGUSR1) | BIT(SIGRTMIN + 1);

	record(SIGUSR1, 0);
	record(SIGUSR2, 0);
	record(SIGRTMIN + 1, 0);
	enroll();
	CHECK(section_mask(&mask, NULL) == 0);
	enter();
	raise_here(SIGUSR2);
	CHECK(handled == 1 && handled_inside == 1 && last_signal == SIGUSR2);
	raise_here(SIGUSR1);
	raise_here(SIGRTMIN + 1);
	raise_here(SIGRTMIN + 1);
	CHECK(handled == 1 && word == 0x11);
	/* and again with something held, for the thread and for the process */
	raise_here(SIGUSR2);
	CHECK(handled == 2);
	kill(getpid(), SIGUSR2);
	CHECK(handled == 3);
	leave();
	CHECK(handled == 6 && handled_inside == 3 && word == 0);
}

/* An empty mask: sections hold nothing. */
static void empty_mask(void)
{
	uint64_t mask = 0;

	record(SIGUSR1, 0);
	enroll();
	CHECK(section_mask(&mask, NULL) == 0);
	enter();
	raise_here(SIGUSR1);
	CHECK(handled == 1 && handled_inside == 1);
	leave();
	CHECK(handled == 1 && word == 0);
}

/* Signals outside the mask act by their default, at once. */
static void unmasked_default_acts(void)
{
	volatile int *shared = shared_memory();
	int status;
	pid_t child = fork();

	if (!child) {
		uint64_t mask = ALL & ~BIT(SIGTERM);

		section_mask(&mask, NULL);
		enroll();
		enter();
		raise_here(SIGUSR1);
		shared[0] = 1;
		for (;;)
			;
	}
	WAIT_FOR(shared[0]);
	kill(child, SIGINT);
	nap(0.03);
	CHECK(waitpid(child, NULL, WNOHANG) == 0);
	kill(child, SIGTERM);
	status = reap(child);
	CHECK(KILLED(status, SIGTERM));
}

/* Changed while something is held: that section keeps what it holds, the next one has the new mask. */
static void mask_changes_with_the_next_section(void)
{
	uint64_t mask = BIT(SIGUSR2);

	record(SIGUSR1, 0);
	record(SIGUSR2, 0);
	enroll();
	enter();
	raise_here(SIGUSR1);
	CHECK(section_mask(&mask, NULL) == 0);
	raise_here(SIGUSR1);
	CHECK(handled == 0);
	leave();
	CHECK(handled == 1 && handled_inside == 0);
	enter();
	raise_here(SIGUSR1);
	CHECK(handled == 2 && handled_inside == 1);
	raise_here(SIGUSR2);
	CHECK(handled == 2);
	leave();
	CHECK(handled == 3 && word == 0);
}

static void *change_mask(void *mask)
{
	CHECK(section_mask(mask, NULL) == 0);
	return NULL;
}

/* One mask for all threads. */
static void mask_is_the_process_s(void)
{
	uint64_t mask = BIT(SIGUSR2), old = 0;
	pthread_t thread;

	record(SIGUSR1, 0);
	enroll();
	CHECK(pthread_create(&thread, NULL, change_mask, &mask) == 0);
	pthread_join(thread, NULL);
	CHECK(section_mask(NULL, &old) == 0 && old == BIT(SIGUSR2));
	enter();
	raise_here(SIGUSR1);
	CHECK(handled == 1);
	leave();
}

/* fork inherits it, and has its own from then on; exec resets it (main.c looks). */
static void mask_over_fork_and_exec(void)
{
	uint64_t mask = BIT(SIGUSR2), old = 0;
	int status;
	pid_t child;

	CHECK(section_mask(&mask, NULL) == 0);
	child = fork();
	if (!child) {
		CHECK(section_mask(NULL, &old) == 0 && old == BIT(SIGUSR2));
		mask = BIT(SIGUSR1);
		CHECK(section_mask(&mask, NULL) == 0);
		_exit(failed);
	}
	status = reap(child);
	CHECK(EXITED(status, 0));
	CHECK(section_mask(NULL, &old) == 0 && old == BIT(SIGUSR2));
	child = fork();
	if (!child) {
		exec_self("--execd", NULL);
		_exit(98);
	}
	status = reap(child);
	CHECK(EXITED(status, 0));
}

const struct test mask_tests[] = {
	{ "mask_command", mask_command },
	{ "only_masked_signals_wait", only_masked_signals_wait },
	{ "empty_mask", empty_mask },
	{ "unmasked_default_acts", unmasked_default_acts },
	{ "mask_changes_with_the_next_section", mask_changes_with_the_next_section },
	{ "mask_is_the_process_s", mask_is_the_process_s },
	{ "mask_over_fork_and_exec", mask_over_fork_and_exec },
	{ NULL, NULL },
};
