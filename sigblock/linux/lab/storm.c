// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sections and signals as fast as they go: threads run nested sections, a child
 * queues real-time signals at them.  Every signal that was sent is handled once,
 * none inside a section.  The detector is tested too: a section that ends in
 * three instructions must lose the flag, or a run without fault proves nothing.
 */
#include "lab.h"
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>

#define THREADS_MAX 4
/* What each storm must have done at least. */
#define SECTIONS_MIN 300000l
#define SIGNALS_MIN 2000l
#define STORM_SIGNAL (SIGRTMIN + 2)

struct storm_thread {
	pthread_t thread;
	volatile pid_t id;
	volatile long sections, received, inside, torn;
};

static struct storm_thread threads[THREADS_MAX];
static __thread struct storm_thread *self;
/* Equal outside of sections only. */
static __thread volatile long begun, ended;
static volatile int quit, done;

static void storm_handler(int signal)
{
	(void)signal;
	self->received++;
	self->inside += in_section();
	self->torn += begun != ended;
}

static void *storm_sections(void *pointer)
{
	self = pointer;
	enroll();
	self->id = thread_id();
	while (!quit) {
		for (int i = 0; i < 50; i++) {
			enter();
			begun++;
			enter();
			leave();
			ended++;
			leave();
		}
		self->sections += 100;
	}
	self->torn += word != 0;
	__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
	while (quit < 2)
		nap(0.005);
	return NULL;
}

static long sections(int count)
{
	long sum = 0;

	for (int i = 0; i < count; i++)
		sum += threads[i].sections;
	return sum;
}

/* shared[0]: stop, shared[1]: sent; shared[8 + i]: sent to thread i. */
static void send_signals(volatile int *shared, pid_t process, int count, int pause_loops, int to_process)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_code = SI_QUEUE;
	info.si_signo = STORM_SIGNAL;
	while (!shared[0]) {
		for (int i = 0; i < count; i++) {
			long result = to_process ? syscall(SYS_rt_sigqueueinfo, process, STORM_SIGNAL, &info) :
						   syscall(SYS_rt_tgsigqueueinfo, process, threads[i].id, STORM_SIGNAL, &info);
			if (result == 0) {
				shared[8 + i]++;
				shared[1]++;
			} else {
				nap(0.0001); /* the queue is full */
			}
			for (volatile int k = 0; k < pause_loops; k++)
				;
		}
	}
	_exit(0);
}

static void storm(int count, int pause_loops, int to_process)
{
	struct sigaction action = { .sa_handler = storm_handler, .sa_flags = SA_RESTART };
	long received = 0, inside = 0, torn = 0;
	volatile int *shared = shared_memory();
	pid_t process = getpid(), sender;
	double start = now();
	sigset_t all;

	sigaction(STORM_SIGNAL, &action, NULL);
	for (int i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i].thread, NULL, storm_sections, &threads[i]) == 0);
	for (int i = 0; i < count; i++)
		WAIT_FOR(threads[i].id);
	/* nothing for this thread */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	sender = fork();
	if (!sender)
		send_signals(shared, process, count, pause_loops, to_process);
	while (shared[1] < SIGNALS_MIN || sections(count) < SECTIONS_MIN)
		nap(0.01);
	shared[0] = 1;
	reap(sender);
	quit = 1;
	while (done < count)
		nap(0.005);
	/* what is still pending for the process */
	nap(0.05);
	quit = 2;
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i].thread, NULL);
		received += threads[i].received;
		inside += threads[i].inside;
		torn += threads[i].torn;
		CHECK(to_process || threads[i].received == shared[8 + i]);
	}
	printf("    storm: %d threads, %ld sections, %d signals sent, %ld handled, %ld inside, %ld torn, %.1f s\n", count,
	       sections(count), shared[1], received, inside, torn, now() - start);
	CHECK(received == shared[1] && inside == 0 && torn == 0);
}

static void storm_one_thread(void)
{
	storm(1, 50, 0);
}

static void storm_four_threads(void)
{
	storm(4, 50, 0);
}

static void storm_full_queue(void)
{
	storm(4, 0, 0);
}

static void storm_of_the_process(void)
{
	storm(4, 50, 1);
}

/*
 * The detector's own test: a section's end that is not one instruction, as plain C makes it on most machines.  The window
 * is widened by instructions that do nothing: were they all in one block of the translator, no signal would ever fall in.
 */
static void detector_finds_a_split_end(void)
{
	double start = now();
	long lost = 0;
	sigset_t set;
	pid_t child;

	record(SIGUSR1, 0);
	enroll();
	child = fork();
	if (!child) {
		for (;;) {
			kill(getppid(), SIGUSR1);
			nap(0.0001);
		}
	}
	while (!lost && now() - start < 300) {
		uint32_t value;

		enter();
		value = word;
		__asm__ volatile(".rept 64\n\tnop\n\t.endr" ::: "memory");
		value -= SIGFASTBLOCK_INC;
		word = value;
		if (value == SIGFASTBLOCK_PEND)
			sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, NULL);
		sigpending(&set);
		lost += word == 0 && sigismember(&set, SIGUSR1);
	}
	kill(child, SIGKILL);
	reap(child);
	CHECK(lost > 0);
}

const struct test storm_tests[] = {
	{ "storm_one_thread", storm_one_thread },
	{ "storm_four_threads", storm_four_threads },
	{ "storm_full_queue", storm_full_queue },
	{ "storm_of_the_process", storm_of_the_process },
	{ "detector_finds_a_split_end", detector_finds_a_split_end },
	{ NULL, NULL },
};
