// SPDX-License-Identifier: GPL-2.0-only
/* What becomes of a held signal by its action and kind: kill, stop, terminate, handlers' flags, queues, timers, children. */
#include "lab.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static void kill_acts(void)
{
	int status, sleeps;
	pid_t child;

	for (sleeps = 0; sleeps < 2; sleeps++) {
		volatile int *shared = shared_memory();

		child = fork();
		if (!child) {
			enroll();
			enter();
			raise_here(SIGUSR1); /* would terminate: held */
			shared[0] = 1;
			for (;;)
				if (sleeps)
					pause();
		}
		WAIT_FOR(shared[0]);
		nap(0.02);
		CHECK(waitpid(child, NULL, WNOHANG) == 0);
		kill(child, SIGKILL);
		status = reap(child);
		CHECK(KILLED(status, SIGKILL));
	}
}

static void stop_and_continue_act(void)
{
	volatile int *shared = shared_memory();
	int status;
	pid_t child = fork();

	if (!child) {
		record(SIGCONT, 0);
		enroll();
		enter();
		shared[0] = 1;
		while (!shared[1])
			;
		shared[2] = handled;
		leave();
		shared[3] = handled;
		_exit(handled_inside);
	}
	WAIT_FOR(shared[0]);
	/* the second time something is held already: the SIGCONT's handler */
	for (int i = 0; i < 2; i++) {
		kill(child, SIGSTOP);
		CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
		kill(child, SIGCONT);
		CHECK(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
	}
	shared[1] = 1;
	status = reap(child);
	CHECK(EXITED(status, 0));
	CHECK(shared[2] == 0 && shared[3] == 1);
}

/* Signals whose default action ends or stops the process wait for the end of the section. */
static void default_actions_wait(void)
{
	const int signals[] = { SIGTERM, SIGQUIT, SIGALRM, SIGRTMIN + 4, SIGTSTP };
	volatile int *shared = shared_memory();
	int status;

	for (int i = 0; i < 5; i++) {
		pid_t child;

		shared[0] = shared[1] = shared[2] = 0;
		child = fork();
		if (!child) {
			struct rlimit no_core = { 0, 0 };

			setrlimit(RLIMIT_CORE, &no_core);
			enroll();
			enter();
			shared[0] = 1;
			while (!shared[1])
				;
			shared[2] = 1;
			leave();
			shared[2] = 2;
			_exit(0);
		}
		setpgid(child, child);
		WAIT_FOR(shared[0]);
		kill(child, signals[i]);
		nap(0.03);
		CHECK(waitpid(child, &status, WNOHANG | WUNTRACED) == 0);
		shared[1] = 1;
		CHECK(waitpid(child, &status, WUNTRACED) == child);
		CHECK(shared[2] == 1);
		if (signals[i] == SIGTSTP) {
			CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
			kill(child, SIGCONT);
			status = reap(child);
			CHECK(EXITED(status, 0) && shared[2] == 2);
		} else {
			CHECK(KILLED(status, signals[i]));
		}
	}
}

static void action_changed_inside(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		enroll();
		enter();
		raise_here(SIGTERM);
		record(SIGTERM, 0);
		leave();
		_exit(handled == 1 ? 7 : 8);
	}
	status = reap(child);
	CHECK(EXITED(status, 7));
	/* ignored while held: dropped */
	enroll();
	enter();
	raise_here(SIGTERM);
	signal(SIGTERM, SIG_IGN);
	leave();
	CHECK(word == 0);
}

static void handler_flags(void)
{
	static char stack[32768];
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action;

	CHECK(sigaltstack(&alternate, NULL) == 0);
	record(SIGUSR1, SA_ONSTACK | SA_RESETHAND);
	record(SIGUSR2, SA_NODEFER);
	enroll();
	enter();
	raise_here(SIGUSR1);
	sigaction(SIGUSR1, NULL, &action);
	CHECK(action.sa_handler != SIG_DFL);
	raise_here(SIGUSR2);
	leave();
	CHECK(handled == 2 && word == 0);
	sigaction(SIGUSR1, NULL, &action);
	CHECK(action.sa_handler == SIG_DFL);
}

/* 20 of a higher number, then 5 of the lowest: the lowest number first, each in order. */
static void queue_both(void)
{
	union sigval value;

	for (value.sival_int = 100; value.sival_int < 120; value.sival_int++)
		CHECK(sigqueue(getpid(), SIGRTMIN + 1, value) == 0);
	for (value.sival_int = 0; value.sival_int < 5; value.sival_int++)
		CHECK(sigqueue(getpid(), SIGRTMIN, value) == 0);
}

static void queued_signals(void)
{
	int in_order = 0, seen[120] = { 0 };

	enroll();
	record(SIGRTMIN, 0);
	record(SIGRTMIN + 1, 0);
	enter();
	queue_both();
	CHECK(handled == 0);
	leave();
	CHECK(handled == 25 && handled_inside == 0);
	/* frames that may nest start in the reverse order; all values are there once */
	for (int i = 0; i < 25; i++)
		seen[order[i] % 120]++;
	for (int i = 0; i < 25; i++)
		CHECK(seen[i < 20 ? 100 + i : i - 20] == 1);

	handled = 0;
	for (int signal = SIGRTMIN; signal <= SIGRTMIN + 1; signal++) {
		struct sigaction action;

		sigaction(signal, NULL, &action);
		sigfillset(&action.sa_mask);
		sigaction(signal, &action, NULL);
	}
	enter();
	queue_both();
	leave();
	CHECK(handled == 25);
	for (int i = 0; i < 25; i++)
		in_order += order[i] == (i < 5 ? i : 95 + i);
	CHECK(in_order == 25);
}

/* A timer's expirations in a section are one signal and overruns. */
static void timer_overruns(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2, .sigev_value.sival_int = 77 };
	const struct itimerspec every_5_ms = { { 0, 5000000 }, { 0, 5000000 } };
	timer_t timer;

	record(SIGUSR2, 0);
	enroll();
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	enter();
	timer_settime(timer, 0, &every_5_ms, NULL);
	spin(0.1);
	CHECK(handled == 0);
	leave();
	CHECK(handled >= 1 && last_code == SI_TIMER && last_value == 77);
	CHECK(timer_getoverrun(timer) >= 0);
	timer_delete(timer);
	CHECK(handled_inside == 0);
}

static void child_ends_inside(void)
{
	pid_t child;
	int status;

	record(SIGCHLD, 0);
	enroll();
	enter();
	child = fork();
	if (!child)
		_exit(3);
	spin(0.05);
	WAIT_FOR(word == 0x11);
	CHECK(handled == 0);
	leave();
	CHECK(handled == 1 && last_code == CLD_EXITED);
	status = reap(child);
	CHECK(EXITED(status, 3));
}

const struct test action_tests[] = {
	{ "kill_acts", kill_acts },
	{ "stop_and_continue_act", stop_and_continue_act },
	{ "default_actions_wait", default_actions_wait },
	{ "action_changed_inside", action_changed_inside },
	{ "handler_flags", handler_flags },
	{ "queued_signals", queued_signals },
	{ "timer_overruns", timer_overruns },
	{ "child_ends_inside", child_ends_inside },
	{ NULL, NULL },
};
