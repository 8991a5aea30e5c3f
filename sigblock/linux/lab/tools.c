// SPDX-License-Identifier: GPL-2.0-only
/* Debugger, system call filter, io_uring, freezer, terminal: kernel parts that use the signal flag for their own ends. */
#include "lab.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

static int stopped_by(pid_t child, int signal)
{
	int status;

	return waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == signal;
}

/* The debugger stops it inside, its breakpoint works inside, the held signal is shown at the section's end. */
static void debugger(void)
{
	volatile int *shared = shared_memory();
	int status;
	pid_t child = fork();

	if (!child) {
		record(SIGUSR1, 0);
		enroll();
		enter();
		shared[0] = 1;
		while (!shared[1])
			;
		__asm__ volatile("int3");
		shared[2] = handled;
		leave();
		shared[3] = handled;
		_exit(handled_inside);
	}
	WAIT_FOR(shared[0]);
	CHECK(ptrace(PTRACE_SEIZE, child, 0, 0) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(ptrace(PTRACE_INTERRUPT, child, 0, 0) == 0);
		CHECK(waitpid(child, &status, 0) == child && status >> 8 == (SIGTRAP | PTRACE_EVENT_STOP << 8));
		CHECK(ptrace(PTRACE_CONT, child, 0, 0) == 0);
		kill(child, SIGUSR1);
		nap(0.03);
		CHECK(waitpid(child, &status, WNOHANG) == 0);
	}
	shared[1] = 1;
	CHECK(stopped_by(child, SIGTRAP));
	CHECK(ptrace(PTRACE_CONT, child, 0, 0) == 0);
	CHECK(stopped_by(child, SIGUSR1));
	CHECK(shared[2] == 0);
	CHECK(ptrace(PTRACE_CONT, child, 0, SIGUSR1) == 0);
	status = reap(child);
	CHECK(EXITED(status, 0) && shared[3] == 1);
}

static void filter_trap(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, code };

	catch_fault(SIGSYS);
	record(SIGUSR1, 0);
	enroll();
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
	enter();
	raise_here(SIGUSR1);
	if (!sigsetjmp(fault_return, 1))
		syscall(SYS_getppid);
	CHECK(faults == 1 && handled == 0);
	leave();
	CHECK(handled == 1);
}

static void *write_event(void *file)
{
	uint64_t one = 1;

	nap(0.03);
	CHECK(write(*(int *)file, &one, sizeof(one)) == sizeof(one));
	return NULL;
}

/* A poll request completes by task work, which uses the signal flag's way out, while a signal is held. */
static void uring_completes(void)
{
	struct io_uring_params parameters;
	struct io_uring_sqe *entry;
	volatile unsigned *completed, *submitted;
	char *submissions, *completions;
	int ring, event = eventfd(0, 0);
	pthread_t thread;

	memset(&parameters, 0, sizeof(parameters));
	ring = syscall(SYS_io_uring_setup, 4, &parameters);
	CHECK(ring >= 0);
	submissions = mmap(NULL, parameters.sq_off.array + parameters.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED,
			   ring, IORING_OFF_SQ_RING);
	completions = mmap(NULL, parameters.cq_off.cqes + parameters.cq_entries * 16, PROT_READ | PROT_WRITE, MAP_SHARED,
			   ring, IORING_OFF_CQ_RING);
	entry = mmap(NULL, parameters.sq_entries * sizeof(*entry), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		     IORING_OFF_SQES);
	completed = (unsigned *)(completions + parameters.cq_off.tail);
	submitted = (unsigned *)(submissions + parameters.sq_off.tail);
	record(SIGUSR1, 0);
	enroll();
	enter();
	raise_here(SIGUSR1);
	memset(entry, 0, sizeof(*entry));
	entry->opcode = IORING_OP_POLL_ADD;
	entry->fd = event;
	entry->poll32_events = POLLIN;
	((unsigned *)(submissions + parameters.sq_off.array))[0] = 0;
	__atomic_store_n(submitted, 1, __ATOMIC_RELEASE);
	CHECK(syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) == 1);
	CHECK(pthread_create(&thread, NULL, write_event, &event) == 0);
	WAIT_FOR(*completed == 1);
	CHECK(handled == 0 && word == 0x11);
	leave();
	CHECK(handled == 1);
	pthread_join(thread, NULL);
}

static void freezer(void)
{
	volatile int *shared = shared_memory();
	char number[16], events[128] = "";
	int status, count, file;
	pid_t child;

	mkdir("/tmp/cgroup", 0755);
	CHECK(mount("cgroup", "/tmp/cgroup", "cgroup2", 0, NULL) == 0);
	CHECK(mkdir("/tmp/cgroup/a", 0755) == 0);
	child = fork();
	if (!child) {
		record(SIGUSR1, 0);
		enroll();
		enter();
		raise_here(SIGUSR1);
		shared[0] = 1;
		while (!shared[1])
			shared[4]++;
		shared[2] = handled;
		leave();
		shared[3] = handled;
		_exit(handled_inside);
	}
	WAIT_FOR(shared[0]);
	snprintf(number, sizeof(number), "%d", child);
	write_file("/tmp/cgroup/a/cgroup.procs", number);
	write_file("/tmp/cgroup/a/cgroup.freeze", "1");
	for (int i = 0; i < 200 && !strstr(events, "frozen 1"); i++) {
		nap(0.01);
		file = open("/tmp/cgroup/a/cgroup.events", O_RDONLY);
		CHECK(read(file, events, sizeof(events) - 1) > 0);
		close(file);
	}
	CHECK(strstr(events, "frozen 1"));
	count = shared[4];
	nap(0.03);
	CHECK(count == shared[4]);
	kill(child, SIGUSR1);
	write_file("/tmp/cgroup/a/cgroup.freeze", "0");
	WAIT_FOR(shared[4] != count);
	shared[1] = 1;
	status = reap(child);
	CHECK(EXITED(status, 0) && shared[2] == 0 && shared[3] == 2);
	CHECK(rmdir("/tmp/cgroup/a") == 0);
	umount("/tmp/cgroup");
}

/* A read in the background stops the reader; in a section, where the stop is held, it must not turn in circles. */
static void read_in_background(int terminal)
{
	char byte;

	setpgid(0, 0);
	enroll();
	enter();
	FAILS(read(terminal, &byte, 1), EIO);
	CHECK(word == 0x11);
	leave();
	_exit(failed);
}

static void terminal_read(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), status, slave;
	pid_t leader, reader;

	CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	leader = fork();
	if (!leader) {
		setsid();
		slave = open(ptsname(master), O_RDWR);
		CHECK(slave >= 0 && tcsetpgrp(slave, getpid()) == 0);
		reader = fork();
		if (!reader)
			read_in_background(slave);
		CHECK(waitpid(reader, &status, WUNTRACED) == reader && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTTIN);
		kill(reader, SIGCONT);
		status = reap(reader);
		CHECK(EXITED(status, 0));
		_exit(failed);
	}
	status = reap(leader);
	CHECK(EXITED(status, 0));
}

const struct test tool_tests[] = {
	{ "debugger", debugger },	    { "filter_trap", filter_trap },	{ "uring_completes", uring_completes },
	{ "freezer", freezer },		    { "terminal_read", terminal_read }, { NULL, NULL },
};
