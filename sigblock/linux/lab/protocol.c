// SPDX-License-Identifier: GPL-2.0-only
/* The protocol of one thread: commands and errors, sections, nesting, the signal mask, a section that ends without UNBLOCK. */
#include "lab.h"
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

static void commands(void)
{
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, NULL), EINVAL);
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL), EINVAL);
	FAILS(sigfastblock(0, NULL), EINVAL);
	FAILS(sigfastblock(99, NULL), EINVAL);
	FAILS(prctl(PR_SIGFASTBLOCK, (long)PR_SIGFASTBLOCK_SETPTR, &word, 1L, 0L), EINVAL);
	FAILS(prctl(PR_SIGFASTBLOCK, (long)PR_SIGFASTBLOCK_SETPTR, &word, 0L, 1L), EINVAL);
	enroll();
	FAILS(sigfastblock(PR_SIGFASTBLOCK_SETPTR, &word), EBUSY);
	FAILS(sigfastblock(99, NULL), EINVAL);
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, &word), EINVAL);
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, &word), EINVAL);
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, NULL), EBUSY);
	word = 0x11;
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, NULL), EBUSY);
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL), EBUSY);
	CHECK(word == 0x11);
	word = 3;
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, NULL), EBUSY);
	word = SIGFASTBLOCK_PEND;
	CHECK(sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, NULL) == 0 && word == 0);
	word = SIGFASTBLOCK_PEND;
	CHECK(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL) == 0 && word == SIGFASTBLOCK_PEND);
	word = 0;
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL), EINVAL);
	enroll();
	CHECK(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL) == 0);
}

static void section(void)
{
	sigset_t set;
	pid_t child;

	record(SIGUSR1, 0);
	record(SIGUSR2, 0);
	enroll();
	raise_here(SIGUSR1);
	CHECK(handled == 1 && word == 0);
	enter();
	CHECK(word == 0x10);
	raise_here(SIGUSR1);
	CHECK(handled == 1 && word == 0x11);
	kill(getpid(), SIGUSR2);
	child = send_later(0.02, getpid(), SIGUSR1);
	reap(child);
	CHECK(handled == 1 && word == 0x11);
	sigpending(&set);
	CHECK(sigismember(&set, SIGUSR1) && sigismember(&set, SIGUSR2));
	/* USR1 for the thread, USR1 and USR2 for the process */
	CHECK(leave() == 0);
	CHECK(handled == 4 && word == 0 && handled_inside == 0);
	enter();
	CHECK(leave() == 0);
	CHECK(word == 0 && handled == 4);
	sigprocmask(SIG_BLOCK, NULL, &set);
	CHECK(!sigismember(&set, SIGUSR1) && !sigismember(&set, SIGUSR2));
}

/* A signal that arrives while the section runs in user mode. */
static void arrival_in_user_mode(void)
{
	pid_t child;

	record(SIGUSR1, 0);
	enroll();
	child = send_later(0.05, getpid(), SIGUSR1);
	enter();
	WAIT_FOR(word != 0x10);
	CHECK(word == 0x11 && handled == 0);
	leave();
	CHECK(handled == 1 && handled_inside == 0 && word == 0);
	reap(child);
}

static void nesting(void)
{
	record(SIGUSR1, 0);
	enroll();
	enter();
	enter();
	raise_here(SIGUSR1);
	CHECK(word == 0x21 && handled == 0);
	leave();
	CHECK(word == 0x11 && handled == 0);
	enter();
	leave();
	CHECK(word == 0x11 && handled == 0);
	leave();
	CHECK(word == 0 && handled == 1 && handled_inside == 0);
}

static void handler_with_section(int signal)
{
	(void)signal;
	enter();
	leave();
	handled++;
}

/* A signal between the end of a section and its UNBLOCK; the handlers have sections too. The late UNBLOCK finds nothing to do. */
static void section_in_handler(void)
{
	signal(SIGUSR1, handler_with_section);
	signal(SIGUSR2, handler_with_section);
	enroll();
	enter();
	raise_here(SIGUSR1);
	end_section(&word);
	CHECK(word == SIGFASTBLOCK_PEND && handled == 0);
	raise_here(SIGUSR2);
	CHECK(handled == 2 && word == 0);
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, NULL), EBUSY);
	CHECK(handled == 2 && word == 0);
}

static void mask_changed_inside(void)
{
	sigset_t set;

	record(SIGUSR1, 0);
	enroll();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	enter();
	raise_here(SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	leave();
	CHECK(handled == 0 && word == 0);
	enter();
	raise_here(SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	CHECK(handled == 0 && word == 0x11);
	leave();
	CHECK(handled == 1 && word == 0);
}

/* UNSETPTR delivers what is held once the count is 0. */
static void unset_delivers(void)
{
	record(SIGUSR1, 0);
	enroll();
	enter();
	raise_here(SIGUSR1);
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL), EBUSY);
	CHECK(handled == 0);
	end_section(&word);
	CHECK(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL) == 0);
	CHECK(handled == 1 && word == SIGFASTBLOCK_PEND);
}

/* The word is zeroed without UNBLOCK: the next signal, or the next way out of the kernel, finds out. */
static void self_healing(void)
{
	pid_t child;

	record(SIGUSR1, 0);
	record(SIGUSR2, 0);
	enroll();
	enter();
	raise_here(SIGUSR1);
	CHECK(word == 0x11 && handled == 0);
	word = 0;
	child = send_later(0.03, getpid(), SIGUSR2);
	WAIT_FOR(handled == 2);
	reap(child);
	enter();
	raise_here(SIGUSR1);
	word = 0;
	CHECK(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL) == 0);
	CHECK(handled == 3);
}

/* Again without rseq, whose work before each return to user mode would look at the word as well. */
static void self_healing_without_rseq(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
		exec_self("--only", "self_healing");
		_exit(98);
	}
	status = reap(child);
	CHECK(EXITED(status, 0));
}

static long microseconds(struct timeval time)
{
	return time.tv_sec * 1000000 + time.tv_usec;
}

/* A loop in user mode spends its time there, not in the kernel. */
static void stay_in_user_mode(void)
{
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	for (volatile long i = 0; i < 5000000; i++)
		;
	getrusage(RUSAGE_SELF, &after);
	CHECK(microseconds(after.ru_stime) - microseconds(before.ru_stime) <
	      microseconds(after.ru_utime) - microseconds(before.ru_utime));
}

/* A held signal must not cost anything while the section runs on: no trip round the kernel's exit. */
static void no_spin(void)
{
	const struct itimerval every_2_ms = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };

	record(SIGUSR1, 0);
	record(SIGALRM, 0);
	enroll();
	enter();
	raise_here(SIGUSR1);
	stay_in_user_mode();
	setitimer(ITIMER_REAL, &every_2_ms, NULL);
	stay_in_user_mode();
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(handled == 0);
	leave();
	CHECK(handled == 2);
}

const struct test protocol_tests[] = {
	{ "commands", commands },
	{ "section", section },
	{ "arrival_in_user_mode", arrival_in_user_mode },
	{ "nesting", nesting },
	{ "section_in_handler", section_in_handler },
	{ "mask_changed_inside", mask_changed_inside },
	{ "unset_delivers", unset_delivers },
	{ "self_healing", self_healing },
	{ "self_healing_without_rseq", self_healing_without_rseq },
	{ "no_spin", no_spin },
	{ NULL, NULL },
};
