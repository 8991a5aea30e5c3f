// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sections under a storm of signals: threads run nested sections, another one
 * queues real-time signals at them.  Every signal that was sent is handled once,
 * none inside a section, none is held after one.  The detector is tested too: a section that ends in
 * three instructions must lose the flag, or a run without fault proves nothing.
 */
#include "lab.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define THREADS_MAX 4
#define STORM_SIGNAL (SIGRTMIN + 2)
/* Signals at once, a thread. */
#define BURST_MAX 16
/* So few pending signals make the queue full. */
#define FULL_QUEUE 128
/* Who has taken all signals does so many sections before the next come: else a thread does nothing but handle signals. */
#define SECTIONS_BETWEEN 300

struct storm_thread {
	pthread_t thread;
	volatile pid_t id;
	volatile long sections, received, inside, torn, late;
	/* the sender's */
	long sent, sections_then;
};

enum kind { TO_THREADS, FILLING_THE_QUEUE, TO_THE_PROCESS };

static struct storm_thread threads[THREADS_MAX];
static int thread_count;
static enum kind kind;
static __thread struct storm_thread *self;
/* Equal outside of sections only. */
static __thread volatile long begun, ended;
static volatile int no_more_signals, quit;
static volatile long sent;

static void storm_handler(int signal)
{
	(void)signal;
	self->received++;
	self->inside += in_section();
	self->torn += begun != ended;
}

static void *storm_sections(void *pointer)
{
	sigset_t pending;

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
		/* what is blocked and pending: nothing, unless it is held without a section */
		sigpending(&pending);
		self->late += sigismember(&pending, STORM_SIGNAL);
	}
	self->torn += word != 0;
	return NULL;
}

static long sections(void)
{
	long sum = 0;

	for (int i = 0; i < thread_count; i++)
		sum += threads[i].sections;
	return sum;
}

static long received(void)
{
	long sum = 0;

	for (int i = 0; i < thread_count; i++)
		sum += threads[i].received;
	return sum;
}

/* Is what was sent handled, and has the target run sections since? */
static int ready(const struct storm_thread *target)
{
	if (kind == TO_THE_PROCESS)
		return received() == sent && sections() - target->sections_then >= SECTIONS_BETWEEN;
	return target->received == target->sent && target->sections - target->sections_then >= SECTIONS_BETWEEN;
}

static int send_one(struct storm_thread *target)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_code = SI_QUEUE;
	info.si_signo = STORM_SIGNAL;
	/* before the call: the handler may run before it returns */
	target->sent++;
	sent++;
	if ((kind == TO_THE_PROCESS ? syscall(SYS_rt_sigqueueinfo, getpid(), STORM_SIGNAL, &info) :
				      syscall(SYS_rt_tgsigqueueinfo, getpid(), target->id, STORM_SIGNAL, &info)) == 0)
		return 1;
	CHECK(errno == EAGAIN);
	target->sent--;
	sent--;
	return 0;
}

static void *send_signals(void *unused)
{
	/* who takes a signal for the process is not known: one target stands for all */
	int targets = kind == TO_THE_PROCESS ? 1 : thread_count;
	unsigned burst = BURST_MAX * thread_count / targets, random = 1;

	while (!no_more_signals) {
		for (int i = 0; i < targets; i++) {
			if (!ready(&threads[i]))
				continue;
			random = random * 1103515245 + 12345;
			/* at any place of the section's loop */
			for (volatile unsigned k = 0; k < random >> 24; k++)
				;
			for (unsigned n = (random >> 16) % burst + 1; kind == FILLING_THE_QUEUE || n; n--)
				if (!send_one(&threads[i]))
					break;
			threads[i].sections_then = kind == TO_THE_PROCESS ? sections() : threads[i].sections;
		}
		nap(0.00005);
	}
	return unused;
}

/* What each storm has done at least. */
static long sections_wanted(void)
{
	return full_figures ? 10000000 : 200000;
}

static long signals_wanted(void)
{
	return full_figures ? 100000 : 2000;
}

static void storm(int count, enum kind of)
{
	struct sigaction action = { .sa_handler = storm_handler, .sa_flags = SA_RESTART };
	struct rlimit few = { FULL_QUEUE, FULL_QUEUE };
	long inside = 0, torn = 0, late = 0;
	double start = now(), end;
	pthread_t sender;
	sigset_t all;

	thread_count = count;
	kind = of;
	if (kind == FILLING_THE_QUEUE)
		CHECK(setrlimit(RLIMIT_SIGPENDING, &few) == 0);
	sigaction(STORM_SIGNAL, &action, NULL);
	for (int i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i].thread, NULL, storm_sections, &threads[i]) == 0);
	for (int i = 0; i < count; i++)
		WAIT_FOR(threads[i].id);
	/* nothing for this thread and the sender */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	CHECK(pthread_create(&sender, NULL, send_signals, NULL) == 0);
	while (sent < signals_wanted() || sections() < sections_wanted())
		nap(0.01);
	no_more_signals = 1;
	pthread_join(sender, NULL);
	for (end = now() + 30; received() < sent && now() < end;)
		nap(0.005);
	quit = 1;
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i].thread, NULL);
		inside += threads[i].inside;
		torn += threads[i].torn;
		late += threads[i].late;
		CHECK(kind == TO_THE_PROCESS || threads[i].received == threads[i].sent);
	}
	printf("    storm: %d threads, %ld sections, %ld signals sent, %ld lost, %ld inside, %ld torn, %ld late, %.1f s\n",
	       count, sections(), sent, sent - received(), inside, torn, late, now() - start);
	CHECK(received() == sent && inside == 0 && torn == 0 && late == 0);
}

static void storm_one_thread(void)
{
	storm(1, TO_THREADS);
}

static void storm_four_threads(void)
{
	storm(4, TO_THREADS);
}

static void storm_full_queue(void)
{
	storm(4, FILLING_THE_QUEUE);
}

static void storm_of_the_process(void)
{
	storm(4, TO_THE_PROCESS);
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
