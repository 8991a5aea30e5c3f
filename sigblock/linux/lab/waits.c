// SPDX-License-Identifier: GPL-2.0-only
/* Calls that sleep, or that take signals by themselves, inside a section. */
#include "lab.h"
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

static const struct timespec ms_100 = { 0, 100000000 };

/* Calls that the kernel can restart sleep on though the handler has no SA_RESTART. */
static void restarted_calls(void)
{
	static int futex;
	pid_t me = getpid(), sender, writer;
	int pipes[2];
	double start;
	char byte;

	record(SIGUSR2, 0);
	enroll();
	enter();
	sender = send_thread_later(0.03, me, me, SIGUSR2);
	start = now();
	CHECK(nanosleep(&ms_100, NULL) == 0);
	CHECK(now() - start >= 0.099 && handled == 0 && word == 0x11);
	leave();
	CHECK(handled == 1);
	reap(sender);

	CHECK(pipe(pipes) == 0);
	enter();
	sender = send_thread_later(0.03, me, me, SIGUSR2);
	writer = fork();
	if (!writer) {
		nap(0.1);
		_exit(write(pipes[1], "x", 1) != 1);
	}
	CHECK(read(pipes[0], &byte, 1) == 1);
	CHECK(handled == 1 && word == 0x11);
	leave();
	CHECK(handled == 2);
	reap(sender);
	reap(writer);

	enter();
	sender = send_thread_later(0.03, me, me, SIGUSR2);
	FAILS(syscall(SYS_futex, &futex, FUTEX_WAIT, 0, &ms_100, NULL, 0), ETIMEDOUT);
	CHECK(handled == 2);
	leave();
	CHECK(handled == 3);
	reap(sender);
}

/* epoll_wait() cannot be restarted: the first signal of a section may end it, later ones must not. */
static void calls_that_cannot_restart(void)
{
	int epoll = epoll_create1(0);
	pid_t me = getpid(), first, second;
	struct epoll_event event;

	record(SIGUSR1, 0);
	record(SIGUSR2, 0);
	enroll();
	enter();
	raise_here(SIGUSR2);
	first = send_thread_later(0.02, me, me, SIGUSR2);
	second = send_thread_later(0.04, me, me, SIGUSR1);
	CHECK(epoll_wait(epoll, &event, 1, 100) == 0);
	CHECK(handled == 0 && word == 0x11);
	leave();
	CHECK(handled == 2);
	reap(first);
	reap(second);
}

static void outside_still_interrupts(void)
{
	pid_t me = getpid(), sender;

	record(SIGUSR2, 0);
	enroll();
	enter();
	leave();
	sender = send_thread_later(0.03, me, me, SIGUSR2);
	FAILS(nanosleep(&(struct timespec){ 5, 0 }, NULL), EINTR);
	CHECK(handled == 1);
	reap(sender);
}

static void signalfd_reads_held(void)
{
	struct signalfd_siginfo info;
	struct pollfd poll_for;
	sigset_t set;
	int file;

	record(SIGUSR1, 0);
	enroll();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	file = signalfd(-1, &set, SFD_NONBLOCK);
	enter();
	raise_here(SIGUSR1);
	poll_for = (struct pollfd){ file, POLLIN, 0 };
	CHECK(poll(&poll_for, 1, 0) == 1);
	CHECK(read(file, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR1);
	leave();
	CHECK(handled == 0 && word == 0);
}

/* Takes that signal, before a time is up after which the call would look by itself. */
static int takes(const sigset_t *set, int signal)
{
	const struct timespec guard = { 10, 0 };
	double start = now();
	siginfo_t info;

	return sigtimedwait(set, &info, &guard) == signal && now() - start < 10;
}

static void sigtimedwait_takes_held(void)
{
	pid_t me = getpid(), sender;
	siginfo_t info;
	sigset_t set;
	double start;

	record(SIGUSR1, 0);
	record(SIGUSR2, 0);
	enroll();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	enter();
	raise_here(SIGUSR1);
	CHECK(takes(&set, SIGUSR1));
	/* while another is held, it sleeps, and is woken */
	raise_here(SIGUSR2);
	CHECK(word == 0x11);
	sender = send_thread_later(0.03, me, me, SIGUSR1);
	CHECK(takes(&set, SIGUSR1));
	reap(sender);
	sender = send_later(0.03, me, SIGUSR1);
	CHECK(takes(&set, SIGUSR1));
	reap(sender);
	/* those that are not waited for do not disturb */
	sender = send_thread_later(0.02, me, me, SIGUSR2);
	start = now();
	FAILS(sigtimedwait(&set, &info, &ms_100), EAGAIN);
	CHECK(now() - start >= 0.099 && handled == 0);
	reap(sender);
	leave();
	CHECK(handled == 1 && last_signal == SIGUSR2 && word == 0);
}

/* A signal that would kill is waited for without being blocked: in a section it is as good as blocked. */
static void sigtimedwait_of_a_deadly_one(void)
{
	pid_t sender;
	sigset_t set;

	enroll();
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	enter();
	raise_here(SIGTERM);
	CHECK(takes(&set, SIGTERM));
	CHECK(word == 0x11);
	sender = send_later(0.03, getpid(), SIGTERM);
	CHECK(takes(&set, SIGTERM));
	reap(sender);
	leave();
	CHECK(word == 0);
}

const struct test wait_tests[] = {
	{ "restarted_calls", restarted_calls },
	{ "calls_that_cannot_restart", calls_that_cannot_restart },
	{ "outside_still_interrupts", outside_still_interrupts },
	{ "signalfd_reads_held", signalfd_reads_held },
	{ "sigtimedwait_takes_held", sigtimedwait_takes_held },
	{ "sigtimedwait_of_a_deadly_one", sigtimedwait_of_a_deadly_one },
	{ NULL, NULL },
};
