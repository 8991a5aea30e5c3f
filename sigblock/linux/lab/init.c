// SPDX-License-Identifier: GPL-2.0-only
/*
 * Process 1 of the lab's image: mounts what tests need, runs the program that
 * the kernel command line names (lab.run=/bin/program,argument,...), looks for
 * complaints in the kernel log, and leaves QEMU through isa-debug-exit, whose
 * status is 2 * ours + 1.  Tests do not run as process 1: it cannot be killed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define READ_ALL 3
static const char *const complaints[] = { "WARNING:", "BUG:", "BUG ", "INFO:", "Call Trace", "soft lockup", "Oops" };

static void leave(int status)
{
	sync();
	printf("lab: status %d\n", status);
	fflush(stdout);
	tcdrain(STDOUT_FILENO); /* the serial line is slower than we are */
	if (ioperm(0xf4, 1, 1) == 0)
		outb(status, 0xf4);
	reboot(RB_AUTOBOOT); /* with -no-reboot this ends QEMU as well, status 0 */
	for (;;)
		pause();
}

static void mount_at(const char *type, const char *directory, mode_t mode)
{
	mkdir(directory, mode);
	if (mount(type, directory, type, 0, NULL) != 0)
		printf("lab: cannot mount %s\n", directory);
}

/*
 * How many lines of the kernel log complain.  The OOM killer prints a stack as
 * a matter of course: between the marks of that test, stacks alone are no complaint.
 */
static int complain(void)
{
	static char log[1 << 20];
	int length = klogctl(READ_ALL, log, sizeof(log) - 1), count = 0, expected = 0;

	log[length < 0 ? 0 : length] = 0;
	if (length <= 0)
		return 1;
	for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
		if (strstr(line, "lab: out of memory expected"))
			expected = 1;
		if (strstr(line, "lab: out of memory done"))
			expected = 0;
		for (size_t i = 0; i < sizeof(complaints) / sizeof(*complaints); i++) {
			if (!strstr(line, complaints[i]) || (expected && !strcmp(complaints[i], "Call Trace")))
				continue;
			printf("log %s\n", line);
			count++;
			break;
		}
	}
	return count;
}

int main(void)
{
	static char line[4096];
	char *program[64], *at, *rest;
	int count = 0, status = 0, console, file, complaint;
	ssize_t length;
	pid_t child;

	mount_at("proc", "/proc", 0755);
	mount_at("devtmpfs", "/dev", 0755);
	/* An image may bring files there */
	if (rmdir("/tmp") == 0)
		mount_at("tmpfs", "/tmp", 01777);
	mount_at("sysfs", "/sys", 0755);
	mount_at("devpts", "/dev/pts", 0755);
	console = open("/dev/console", O_RDWR);
	if (console >= 0)
		for (int i = 0; i < 3; i++)
			dup2(console, i);
	setvbuf(stdout, NULL, _IONBF, 0);
	file = open("/proc/cmdline", O_RDONLY);
	length = read(file, line, sizeof(line) - 1);
	line[length < 0 ? 0 : length] = 0;
	close(file);
	at = strstr(line, "lab.run=");
	if (!at)
		leave(97);
	at += strlen("lab.run=");
	at[strcspn(at, " \n")] = 0;
	for (char *word = strtok_r(at, ",", &rest); word && count < 63; word = strtok_r(NULL, ",", &rest))
		program[count++] = word;
	program[count] = NULL;
	child = fork();
	if (!child) {
		setsid();
		execv(program[0], program);
		perror(program[0]);
		_exit(98);
	}
	while (waitpid(-1, &status, 0) != child)
		;
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 99;
	complaint = complain();
	printf("log complaints %d\n", complaint);
	leave(status ? status : complaint ? 96 : 0);
}
