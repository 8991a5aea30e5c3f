// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a word left raised, or used against its purpose, can do: it must not
 * outlive the program, reach another's, or save a process from being killed.
 */
#include "lab.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <termios.h>

static void *register_and_forget(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3000; i++) {
		enroll();
		enter();
		leave();
		if (i % 3)
			word = i % 2; /* SIGFASTBLOCK_PEND that nobody set */
		CHECK(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL) == 0);
		word = 0;
	}
	return NULL;
}

static void *end_registered(void *unused)
{
	(void)unused;
	enroll();
	enter();
	return NULL;
}

/* Four threads register and forget while signals fall, and a few hundred end registered and raised. */
static void registration_storm(void)
{
	pthread_t threads[4], thread;
	pid_t child;
	int before;

	record(SIGUSR1, SA_RESTART);
	child = fork();
	if (!child) {
		for (;;) {
			kill(getppid(), SIGUSR1);
			nap(0.0002);
		}
	}
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, register_and_forget, NULL) == 0);
	for (int i = 0; i < 50; i++) {
		CHECK(pthread_create(&thread, NULL, end_registered, NULL) == 0);
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	kill(child, SIGKILL);
	reap(child);
	CHECK(handled > 0);
	before = handled;
	raise_here(SIGUSR1);
	CHECK(handled == before + 1);
}

/* A set-id program starts as any other: no word, the default mask, and what was held acts on it. */
static void set_id_program(void)
{
	uint64_t none = 0;
	int status;
	pid_t child;

	for (int held = 0; held < 2; held++) {
		child = fork();
		if (!child) {
			CHECK(setgid(1000) == 0 && setuid(1000) == 0);
			enroll();
			if (!held)
				CHECK(section_mask(&none, NULL) == 0);
			enter();
			if (held)
				raise_here(SIGUSR1);
			execl("/bin/set-id", "set-id", "--set-id", (char *)NULL);
			_exit(98);
		}
		status = reap(child);
		CHECK(held ? KILLED(status, SIGUSR1) : EXITED(status, 0));
	}
}

/* A debugger writes the word of a thread that has a signal held. */
static void debugger_writes_the_word(void)
{
	volatile int *shared = shared_memory();
	int status;
	long old;
	pid_t child = fork();

	if (!child) {
		record(SIGUSR1, 0);
		enroll();
		enter();
		raise_here(SIGUSR1);
		shared[0] = 1;
		while (!shared[1])
			;
		_exit(handled == 1 && !handled_inside && word == 0 ? 0 : 1);
	}
	WAIT_FOR(shared[0]);
	CHECK(ptrace(PTRACE_SEIZE, child, 0, 0) == 0 && ptrace(PTRACE_INTERRUPT, child, 0, 0) == 0);
	CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	errno = 0;
	/* the word's address is the same in the child: fork copied the thread area */
	old = ptrace(PTRACE_PEEKDATA, child, &word, 0);
	CHECK(errno == 0 && (uint32_t)old == 0x11);
	CHECK(ptrace(PTRACE_POKEDATA, child, &word, old & ~0xffffffffl) == 0);
	CHECK(ptrace(PTRACE_CONT, child, 0, 0) == 0);
	kill(child, SIGUSR2); /* another signal, for it to look */
	for (;;) {
		CHECK(waitpid(child, &status, 0) == child);
		if (!WIFSTOPPED(status))
			break;
		shared[2]++;
		if (WSTOPSIG(status) == SIGUSR1)
			shared[1] = 1;
		/* SIGUSR2 would kill: not passed on */
		ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status) == SIGUSR1 ? SIGUSR1 : 0);
	}
	CHECK(EXITED(status, 0) && shared[2] == 2);
}

static void refuse_prctl(unsigned int answer)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, code };

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

/* A filter that refuses the command: the probe says so; a section that has begun ends by sigprocmask(). */
static void filter_refuses(void)
{
	sigset_t set;
	int status;
	pid_t child = fork();

	if (!child) {
		refuse_prctl(SECCOMP_RET_ERRNO | EPERM);
		FAILS(sigfastblock(PR_SIGFASTBLOCK_SETPTR, &word), EPERM);
		_exit(failed);
	}
	status = reap(child);
	CHECK(EXITED(status, 0));
	record(SIGUSR1, 0);
	enroll();
	refuse_prctl(SECCOMP_RET_ERRNO | EPERM);
	enter();
	raise_here(SIGUSR1);
	CHECK(handled == 0);
	FAILS(leave(), EPERM);
	CHECK(word == SIGFASTBLOCK_PEND);
	/* nothing of the mask changes: setting it is enough */
	word = 0;
	sigprocmask(SIG_SETMASK, NULL, &set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	CHECK(handled == 1 && handled_inside == 0);
}

/* A filter that kills does so at the section's end if something was held, as it says. */
static void filter_kills(void)
{
	int status;
	pid_t child;

	for (int held = 0; held < 2; held++) {
		child = fork();
		if (!child) {
			record(SIGUSR1, 0);
			enroll();
			refuse_prctl(SECCOMP_RET_KILL_PROCESS);
			enter();
			if (held)
				raise_here(SIGUSR1);
			leave();
			_exit(0);
		}
		status = reap(child);
		CHECK(held ? KILLED(status, SIGSYS) : EXITED(status, 0));
	}
}

/* Ctrl-C at a word left raised: held, like a blocked SIGINT; SIGKILL acts, and the section's end delivers. */
static void raised_word_and_ctrl_c(void)
{
	for (int ends = 0; ends < 2; ends++) {
		int master = posix_openpt(O_RDWR | O_NOCTTY), status;
		volatile int *shared = shared_memory();
		pid_t child;

		CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
		child = fork();
		if (!child) {
			setsid();
			if (open(ptsname(master), O_RDWR) < 0)
				_exit(50);
			enroll();
			enter();
			shared[0] = 1;
			while (!shared[1])
				shared[2] = word;
			leave();
			_exit(51);
		}
		WAIT_FOR(shared[0]);
		CHECK(write(master, "\003", 1) == 1);
		WAIT_FOR(shared[2] == 0x11);
		CHECK(waitpid(child, NULL, WNOHANG) == 0);
		if (ends)
			shared[1] = 1;
		else
			kill(child, SIGKILL);
		status = reap(child);
		CHECK(KILLED(status, ends ? SIGINT : SIGKILL));
		close(master);
	}
}

static void *stay_in_section(void *unused)
{
	enroll();
	enter();
	for (;;)
		pause();
	return unused;
}

/* SIGTERM waits while all threads have their words raised; SIGKILL acts on one thread and on several. */
static void raised_word_and_sigterm(void)
{
	for (int threads = 1; threads < 4; threads++) {
		volatile int *shared = shared_memory();
		int status;
		pid_t child = fork();

		if (!child) {
			pthread_t thread;

			for (int i = 1; i < threads; i++)
				CHECK(pthread_create(&thread, NULL, stay_in_section, NULL) == 0);
			nap(0.02);
			shared[0] = 1;
			stay_in_section(NULL);
		}
		WAIT_FOR(shared[0]);
		nap(0.02);
		kill(child, SIGTERM);
		nap(0.03);
		CHECK(waitpid(child, NULL, WNOHANG) == 0);
		kill(child, SIGKILL);
		status = reap(child);
		CHECK(KILLED(status, SIGKILL));
	}
}

/* The kernel runs out of memory: a raised word does not save its process. */
static void raised_word_and_no_memory(void)
{
	volatile int *shared = shared_memory();
	int status;
	pid_t child;

	write_file("/dev/kmsg", "lab: out of memory expected\n");
	child = fork();
	if (!child) {
		write_file("/proc/self/oom_score_adj", "1000");
		enroll();
		enter();
		raise_here(SIGTERM);
		shared[0] = 1;
		for (;;)
			pause();
	}
	WAIT_FOR(shared[0]);
	/* as if memory were short: the process that counts most is killed */
	write_file("/proc/sysrq-trigger", "f");
	status = reap(child);
	CHECK(KILLED(status, SIGKILL));
	write_file("/dev/kmsg", "lab: out of memory done\n");
}

const struct test security_tests[] = {
	{ "registration_storm", registration_storm },
	{ "set_id_program", set_id_program },
	{ "debugger_writes_the_word", debugger_writes_the_word },
	{ "filter_refuses", filter_refuses },
	{ "filter_kills", filter_kills },
	{ "raised_word_and_ctrl_c", raised_word_and_ctrl_c },
	{ "raised_word_and_sigterm", raised_word_and_sigterm },
	{ "raised_word_and_no_memory", raised_word_and_no_memory },
	{ NULL, NULL },
};
