// SPDX-License-Identifier: GPL-2.0-only
/* The helpers of lab.h. */
#include "lab.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

int full_figures, failed;
__thread volatile uint32_t word __attribute__((aligned(64)));
volatile int handled, last_signal, last_code, last_value, handled_inside, order[256];
volatile pid_t last_thread;
void *volatile last_address;
volatile int faults;
sigjmp_buf fault_return;
volatile uint32_t word_in_fault;

void check_failed(const char *file, int line, const char *what)
{
	const char *name = strrchr(file, '/');
	int error = errno;

	printf("    %s:%d: %s (errno %d, word %#x, handled %d)\n", name ? name + 1 : file, line, what, error, word, handled);
	failed = 1;
	errno = error;
}

void enroll(void)
{
	CHECK(sigfastblock(PR_SIGFASTBLOCK_SETPTR, &word) == 0);
}

static void recorder(int signal, siginfo_t *info, void *context)
{
	int n = handled;

	(void)context;
	handled_inside += in_section();
	if (n < 256)
		order[n] = info->si_code == SI_QUEUE ? info->si_value.sival_int : signal;
	last_signal = signal;
	last_code = info->si_code;
	last_value = info->si_value.sival_int;
	last_address = info->si_addr;
	last_thread = thread_id();
	handled = n + 1;
}

void record(int signal, int flags)
{
	struct sigaction action = { .sa_sigaction = recorder, .sa_flags = SA_SIGINFO | flags };

	sigemptyset(&action.sa_mask);
	CHECK(sigaction(signal, &action, NULL) == 0);
}

static void fault_handler(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	faults++;
	word_in_fault = word;
	last_code = info->si_code;
	last_address = info->si_addr;
	siglongjmp(fault_return, 1);
}

void catch_fault(int signal)
{
	struct sigaction action = { .sa_sigaction = fault_handler, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	CHECK(sigaction(signal, &action, NULL) == 0);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void spin(double seconds)
{
	double end = now() + seconds;

	while (now() < end)
		;
}

void nap(double seconds)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9) };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

pid_t thread_id(void)
{
	return syscall(SYS_gettid);
}

void raise_here(int signal)
{
	syscall(SYS_tgkill, getpid(), thread_id(), signal);
}

pid_t send_later(double seconds, pid_t process, int signal)
{
	pid_t child = fork();

	if (child)
		return child;
	nap(seconds);
	kill(process, signal);
	_exit(0);
}

pid_t send_thread_later(double seconds, pid_t process, pid_t thread, int signal)
{
	pid_t child = fork();

	if (child)
		return child;
	nap(seconds);
	syscall(SYS_tgkill, process, thread, signal);
	_exit(0);
}

int reap(pid_t child)
{
	int status = -1;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

volatile int *shared_memory(void)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

volatile uint32_t *new_page(int protection)
{
	void *memory = mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

void write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	CHECK(file >= 0);
	CHECK(write(file, text, strlen(text)) == (ssize_t)strlen(text));
	close(file);
}

void exec_self(const char *role, const char *argument)
{
	execl("/proc/self/exe", "ktest", role, argument, (char *)NULL);
}
