// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the tests, each in a process of its own that is killed if it hangs, and
 * prints a line for each; `ktest [--full] [NAME...]`.  Started with a role
 * (--execd and the like) it is what a test executes.  Exit status 0: all that
 * were asked for ran and passed.
 */
#include "lab.h"
#include <sys/auxv.h>
#include <sys/wait.h>

static const struct test *const groups[] = {
	protocol_tests, action_tests, fault_tests, process_tests, thread_tests,	  wait_tests,
	tool_tests,	mask_tests,   memory_tests, security_tests, storm_tests,
};
/* Seconds after which a test hangs; storms on a busy machine take minutes, with full figures many. */
#define HANGS_AFTER 60.0
#define STORM_HANGS_AFTER 600.0
#define FULL_STORM_HANGS_AFTER 7200.0

/* The image after exec: nothing registered, the default mask, the word untouched. */
static int after_exec(int secure)
{
	uint64_t mask = 0;

	if (getauxval(AT_SECURE) != (unsigned long)secure)
		return 20;
	if (section_mask(NULL, &mask) != 0 || mask != ~(1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1)))
		return 21;
	if (sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, NULL) != -1 || errno != EINVAL)
		return 22;
	enroll();
	return failed || word != 0 ? 23 : 0;
}

static int role(int count, char **arguments)
{
	if (!strcmp(arguments[1], "--execd"))
		return after_exec(0);
	if (!strcmp(arguments[1], "--set-id"))
		return after_exec(1);
	/* --only NAME: one test in this very process */
	for (size_t g = 0; count > 2 && g < sizeof(groups) / sizeof(*groups); g++)
		for (const struct test *t = groups[g]; t->name; t++)
			if (!strcmp(arguments[2], t->name)) {
				t->run();
				return failed;
			}
	return 99;
}

static double limit(const struct test *group)
{
	if (group != storm_tests)
		return HANGS_AFTER;
	return full_figures ? FULL_STORM_HANGS_AFTER : STORM_HANGS_AFTER;
}

static int passes(const struct test *test, double limit)
{
	double start = now();
	int status = 0, hung = 0;
	pid_t child = fork();

	if (!child) {
		setpgid(0, 0);
		test->run();
		_exit(failed);
	}
	while (waitpid(child, &status, WNOHANG) == 0) {
		nap(0.005);
		if (now() - start > limit) {
			hung = 1;
			kill(-child, SIGKILL);
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			break;
		}
	}
	if (!hung && EXITED(status, 0)) {
		printf("ok %s %.2f s\n", test->name, now() - start);
		return 1;
	}
	printf("FAILED %s %s, wait status %#x\n", test->name, hung ? "hangs" : "fails", status);
	return 0;
}

int main(int count, char **arguments)
{
	int first, ran = 0, passed = 0;

	setvbuf(stdout, NULL, _IONBF, 0);
	full_figures = count > 1 && !strcmp(arguments[1], "--full");
	first = 1 + full_figures;
	if (count > 1 && !full_figures && !strncmp(arguments[1], "--", 2))
		return role(count, arguments);
	if (sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, NULL) == -1 && errno == EINVAL &&
	    sigfastblock(PR_SIGFASTBLOCK_SETPTR, &word) == 0) {
		sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL);
	} else {
		printf("FAILED probe: this kernel has no PR_SIGFASTBLOCK (errno %d)\n", errno);
		return 2;
	}
	for (size_t g = 0; g < sizeof(groups) / sizeof(*groups); g++) {
		for (const struct test *t = groups[g]; t->name; t++) {
			int wanted = first >= count;

			for (int i = first; i < count; i++)
				wanted |= !strcmp(arguments[i], t->name);
			if (!wanted)
				continue;
			ran++;
			passed += passes(t, limit(groups[g]));
		}
	}
	printf("tests %d passed %d\n", ran, passed);
	return ran == 0 || passed != ran;
}
