// SPDX-License-Identifier: GPL-2.0-only
/* Several threads: registration is per thread; what is for the process goes to one that is free. */
#include "lab.h"
#include <pthread.h>
#include <sys/wait.h>

static volatile int ready, quit;

static void *register_only(void *result)
{
	*(int *)result = sigfastblock(PR_SIGFASTBLOCK_SETPTR, &word);
	return NULL;
}

static void thread_does_not_inherit(void)
{
	pthread_t thread;
	int result = -1;

	enroll();
	enter();
	CHECK(pthread_create(&thread, NULL, register_only, &result) == 0);
	pthread_join(thread, NULL);
	leave();
	CHECK(result == 0 && word == 0);
}

static void *stay_free(void *unused)
{
	(void)unused;
	ready = 1;
	while (!quit)
		nap(0.01);
	return NULL;
}

static void *stay_in_section(void *unused)
{
	(void)unused;
	enroll();
	enter();
	ready = 1;
	while (!quit)
		;
	leave();
	return NULL;
}

static pthread_t start(void *(*function)(void *))
{
	pthread_t thread;

	ready = quit = 0;
	CHECK(pthread_create(&thread, NULL, function, NULL) == 0);
	WAIT_FOR(ready);
	return thread;
}

static void a_free_thread_takes_it(void)
{
	pid_t main_thread = thread_id(), child;
	pthread_t thread;

	record(SIGUSR1, SA_RESTART);
	enroll();
	thread = start(stay_free);
	enter();
	for (int i = 0; i < 5; i++) {
		child = send_later(0.01, getpid(), SIGUSR1);
		WAIT_FOR(handled == i + 1);
		CHECK(last_thread != main_thread);
		reap(child);
	}
	/* but one for this thread alone waits */
	raise_here(SIGUSR1);
	child = send_thread_later(0.01, getpid(), main_thread, SIGUSR1);
	reap(child);
	CHECK(handled == 5);
	leave();
	CHECK(handled == 6 && last_thread == main_thread && handled_inside == 0);
	quit = 1;
	pthread_join(thread, NULL);
}

/* Every thread is in a section: the first to leave takes it. */
static void all_in_sections(void)
{
	pid_t main_thread = thread_id(), child;
	pthread_t thread;

	record(SIGUSR1, 0);
	enroll();
	for (int main_leaves_first = 0; main_leaves_first < 2; main_leaves_first++) {
		int before = handled;

		thread = start(stay_in_section);
		enter();
		child = send_later(0.01, getpid(), SIGUSR1);
		reap(child);
		spin(0.02);
		CHECK(handled == before);
		if (main_leaves_first)
			leave();
		else
			quit = 1;
		WAIT_FOR(handled == before + 1);
		CHECK((last_thread == main_thread) == main_leaves_first);
		quit = 1;
		pthread_join(thread, NULL);
		if (!main_leaves_first)
			leave();
		CHECK(handled == before + 1 && word == 0 && handled_inside == 0);
	}
}

/* A thread that ends inside a section leaves a signal of the process to the others. */
static void *end_inside(void *unused)
{
	(void)unused;
	enroll();
	enter();
	ready = 1;
	while (!quit)
		;
	return NULL;
}

static void thread_ends_inside(void)
{
	pthread_t thread;

	record(SIGUSR1, 0);
	enroll();
	thread = start(end_inside);
	enter();
	kill(getpid(), SIGUSR1);
	spin(0.02);
	CHECK(handled == 0);
	quit = 1;
	pthread_join(thread, NULL);
	CHECK(handled == 0);
	leave();
	CHECK(handled == 1 && word == 0);
}

/* A signal that kills the process does so though another thread is in a section. */
static void a_free_thread_dies_for_all(void)
{
	volatile int *shared = shared_memory();
	int status;
	pid_t child = fork();

	if (!child) {
		enroll();
		start(stay_free);
		enter();
		shared[0] = 1;
		for (;;)
			;
	}
	WAIT_FOR(shared[0]);
	kill(child, SIGTERM);
	status = reap(child);
	CHECK(KILLED(status, SIGTERM));
}

const struct test thread_tests[] = {
	{ "thread_does_not_inherit", thread_does_not_inherit },
	{ "a_free_thread_takes_it", a_free_thread_takes_it },
	{ "all_in_sections", all_in_sections },
	{ "thread_ends_inside", thread_ends_inside },
	{ "a_free_thread_dies_for_all", a_free_thread_dies_for_all },
	{ NULL, NULL },
};
