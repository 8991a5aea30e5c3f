// SPDX-License-Identifier: GPL-2.0-only
/* Signals that the thread's own instruction raises: delivered inside a section, where the same signal from kill() waits. */
#include "lab.h"

static volatile int *volatile nowhere = (volatile int *)8;

static void divide_by_zero(void)
{
	volatile int zero = 0, one = 1;

	one = one / zero;
}

/* Each kind of fault, in a section of which a signal is held or not. */
static void faults_come_through(void)
{
	catch_fault(SIGSEGV);
	catch_fault(SIGILL);
	catch_fault(SIGTRAP);
	catch_fault(SIGFPE);
	record(SIGUSR1, 0);
	enroll();
	for (int held = 0; held < 2; held++) {
		int before = faults;

		enter();
		if (held) {
			raise_here(SIGUSR1);
			CHECK(word == 0x11);
		}
		if (!sigsetjmp(fault_return, 1))
			*nowhere = 1;
		CHECK(faults == before + 1 && last_address == (void *)8);
		CHECK((word_in_fault & ~SIGFASTBLOCK_FLAGS) == 0x10);
		if (!sigsetjmp(fault_return, 1))
			__asm__ volatile("ud2");
		CHECK(faults == before + 2);
		if (!sigsetjmp(fault_return, 1))
			__asm__ volatile("int3");
		CHECK(faults == before + 3);
		if (!sigsetjmp(fault_return, 1))
			divide_by_zero();
		CHECK(faults == before + 4);
		CHECK(handled == 0);
		leave();
		CHECK(word == 0 && handled == held);
	}
}

/* The same numbers sent by another call are no faults. */
static void sent_faults_wait(void)
{
	record(SIGSEGV, 0);
	enroll();
	enter();
	raise_here(SIGSEGV);
	kill(getpid(), SIGSEGV);
	CHECK(handled == 0 && word == 0x11);
	leave();
	CHECK(handled >= 1 && last_code <= 0 && word == 0);
}

/* A real fault while a signal of another number that could be one is held: that one goes on waiting. */
static void fault_beside_a_held_one(void)
{
	catch_fault(SIGSEGV);
	record(SIGBUS, 0);
	enroll();
	enter();
	raise_here(SIGBUS);
	if (!sigsetjmp(fault_return, 1))
		*nowhere = 1;
	CHECK(faults == 1 && last_address == (void *)8);
	CHECK(handled == 0 && word == 0x11);
	leave();
	CHECK(handled == 1 && word == 0);
}

/*
 * A real fault while the same number, sent by tgkill(), is held for the thread:
 * standard signals do not queue, so the handler sees the sent one; it must run,
 * and the fault after it must come as what it is.
 */
static void fault_of_a_held_number(void)
{
	volatile int by_kill = 0;

	catch_fault(SIGSEGV);
	enroll();
	enter();
	raise_here(SIGSEGV);
	CHECK(faults == 0 && word == 0x11);
	for (int i = 0; i < 2; i++) {
		if (!sigsetjmp(fault_return, 1))
			*nowhere = 1;
		by_kill += last_code == SI_TKILL;
	}
	CHECK(faults == 2 && by_kill == 1 && last_address == (void *)8);
	/* that number waits again */
	record(SIGSEGV, 0);
	raise_here(SIGSEGV);
	CHECK(handled == 0);
	leave();
	CHECK(handled == 1 && word == 0);
}

/* As above with one that is for the process: it is no other's business and waits. */
static void fault_beside_a_process_signal(void)
{
	catch_fault(SIGSEGV);
	enroll();
	enter();
	kill(getpid(), SIGSEGV);
	CHECK(faults == 0 && word == 0x11);
	if (!sigsetjmp(fault_return, 1))
		*nowhere = 1;
	CHECK(faults == 1 && last_address == (void *)8 && last_code == SEGV_MAPERR);
	getppid();
	CHECK(faults == 1);
	if (!sigsetjmp(fault_return, 1))
		leave();
	CHECK(faults == 2 && last_code == SI_USER && word == 0);
}

const struct test fault_tests[] = {
	{ "faults_come_through", faults_come_through },
	{ "sent_faults_wait", sent_faults_wait },
	{ "fault_beside_a_held_one", fault_beside_a_held_one },
	{ "fault_of_a_held_number", fault_of_a_held_number },
	{ "fault_beside_a_process_signal", fault_beside_a_process_signal },
	{ NULL, NULL },
};
