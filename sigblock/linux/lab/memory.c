// SPDX-License-Identifier: GPL-2.0-only
/*
 * Can a program trick the kernel through the address of the word or its content?
 * Addresses that are no word, memory that changes under the kernel, pages that
 * somebody else fills in.  docs/security.md says what follows from each.
 */
#include "lab.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void no_word_addresses(void)
{
	static volatile uint32_t words[4];
	char *kernel = (char *)0xffffffff81000000ul, *direct_map = (char *)0xffff888000000000ul;
	char *not_canonical = (char *)0x8000000000000000ul, *end_of_user = (char *)0x7ffffffff000ul;
	char *vsyscall = (char *)0xffffffffff600000ul;
	char *const unreadable[] = { kernel, direct_map, not_canonical, end_of_user, vsyscall, (char *)4, (char *)-4 };

	FAILS(sigfastblock(PR_SIGFASTBLOCK_SETPTR, NULL), EINVAL);
	for (int i = 1; i < 4; i++) {
		FAILS(sigfastblock(PR_SIGFASTBLOCK_SETPTR, (char *)words + i), EINVAL);
		FAILS(sigfastblock(PR_SIGFASTBLOCK_SETPTR, kernel + i), EINVAL);
	}
	for (size_t i = 0; i < sizeof(unreadable) / sizeof(*unreadable); i++)
		FAILS(sigfastblock(PR_SIGFASTBLOCK_SETPTR, unreadable[i]), EFAULT);
	/* nothing of that registered anything */
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL), EINVAL);
	for (int i = 0; i < 2; i++) {
		uint64_t old;

		FAILS(section_mask((uint64_t *)unreadable[i], NULL), EFAULT);
		FAILS(section_mask(NULL, (uint64_t *)unreadable[i]), EFAULT);
		CHECK(section_mask(NULL, &old) == 0);
	}
}

/* The signal that shows the bad word comes once, with the word's address; then the thread is as without a word. */
static void expect_bad_word(volatile uint32_t *page, int code)
{
	int before = faults, handled_before = handled;

	if (!sigsetjmp(fault_return, 1))
		raise_here(SIGUSR1);
	CHECK(faults == before + 1 && last_address == page && last_code == code);
	CHECK(handled == handled_before + 1);
	raise_here(SIGUSR1);
	CHECK(faults == before + 1 && handled == handled_before + 2);
	FAILS(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL), EINVAL);
}

static volatile uint32_t *word_on_new_page(int protection)
{
	volatile uint32_t *page = new_page(protection);

	record(SIGUSR1, 0);
	catch_fault(SIGSEGV);
	CHECK(sigfastblock(PR_SIGFASTBLOCK_SETPTR, page) == 0);
	return page;
}

static void word_unmapped(void)
{
	volatile uint32_t *page = word_on_new_page(PROT_READ | PROT_WRITE);

	munmap((void *)page, 4096);
	expect_bad_word(page, SEGV_MAPERR);
	page = word_on_new_page(PROT_READ | PROT_WRITE);
	mprotect((void *)page, 4096, PROT_NONE);
	expect_bad_word(page, SEGV_MAPERR);
}

static void word_read_only(void)
{
	volatile uint32_t *page = word_on_new_page(PROT_READ | PROT_WRITE);

	page[0] = 0x10;
	mprotect((void *)page, 4096, PROT_READ);
	expect_bad_word(page, SEGV_ACCERR);
	/* a 0 is only read */
	page = word_on_new_page(PROT_READ);
	raise_here(SIGUSR1);
	CHECK(faults == 1 && handled == 3);
}

/* Unmapped while signals are held: they are delivered, after the SIGSEGV. */
static void word_unmapped_while_held(void)
{
	volatile uint32_t *page = word_on_new_page(PROT_READ | PROT_WRITE);

	page[0] = 0x10;
	raise_here(SIGUSR1);
	CHECK(page[0] == 0x11 && handled == 0);
	record(SIGUSR2, 0);
	/* from here on the word is looked at whenever the thread was preempted */
	if (!sigsetjmp(fault_return, 1)) {
		munmap((void *)page, 4096);
		raise_here(SIGUSR2);
	}
	CHECK(faults == 1 && handled == 2);
}

/* The commands answer EFAULT, end the registration and send nothing. */
static void commands_on_a_bad_word(void)
{
	for (int way = 0; way < 3; way++) {
		volatile uint32_t *page = word_on_new_page(PROT_READ | PROT_WRITE);

		page[0] = SIGFASTBLOCK_PEND;
		if (way == 2)
			mprotect((void *)page, 4096, PROT_READ);
		else
			munmap((void *)page, 4096);
		FAILS(sigfastblock(way == 1 ? PR_SIGFASTBLOCK_UNSETPTR : PR_SIGFASTBLOCK_UNBLOCK, NULL), EFAULT);
		FAILS(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL), EINVAL);
		raise_here(SIGUSR1);
		CHECK(faults == 0 && handled == way + 1);
	}
}

/* Handler of SIGSEGV is missing: the process dies of it, once. */
static void bad_word_kills(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		volatile uint32_t *page = new_page(PROT_READ | PROT_WRITE);

		sigfastblock(PR_SIGFASTBLOCK_SETPTR, page);
		record(SIGUSR1, 0);
		munmap((void *)page, 4096);
		raise_here(SIGUSR1);
		_exit(0);
	}
	status = reap(child);
	CHECK(KILLED(status, SIGSEGV));
}

/* A page of a file: shared with the file, and gone when the file is cut short. */
static void word_in_a_file(void)
{
	int file = open("/tmp/word", O_RDWR | O_CREAT | O_TRUNC, 0600);
	volatile uint32_t *page;
	uint32_t content = 0;

	CHECK(ftruncate(file, 4096) == 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	record(SIGUSR1, 0);
	record(SIGUSR2, 0);
	catch_fault(SIGSEGV);
	CHECK(sigfastblock(PR_SIGFASTBLOCK_SETPTR, page) == 0);
	page[0] = 0x10;
	raise_here(SIGUSR1);
	CHECK(handled == 0 && pread(file, &content, 4, 0) == 4 && content == 0x11);
	/* the file is written from elsewhere: heals as if the thread had done it */
	content = 0;
	CHECK(pwrite(file, &content, 4, 0) == 4);
	raise_here(SIGUSR2);
	CHECK(handled == 2);
	CHECK(ftruncate(file, 0) == 0);
	expect_bad_word(page, SEGV_MAPERR);
	unlink("/tmp/word");
}

/* One word of two processes: each is held or not by what it finds there. */
static void word_shared_with_a_child(void)
{
	volatile uint32_t *shared = (volatile uint32_t *)shared_memory();
	int status;
	pid_t child;

	record(SIGUSR1, 0);
	record(SIGUSR2, 0);
	CHECK(sigfastblock(PR_SIGFASTBLOCK_SETPTR, shared) == 0);
	child = fork();
	if (!child) {
		for (int i = 0; i < 20000; i++)
			shared[0] = i % 5 * 8;
		shared[0] = 0;
		shared[1] = 1;
		_exit(0);
	}
	while (!shared[1])
		raise_here(SIGUSR1);
	status = reap(child);
	CHECK(EXITED(status, 0));
	shared[0] = 0;
	raise_here(SIGUSR2);
	CHECK(handled > 0 && shared[0] == 0);
	CHECK(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL) == 0);
}

static volatile int quit;

static void *scribble(void *target)
{
	uint32_t value = 1;

	while (!quit) {
		value = value * 1664525 + 1013904223;
		*(volatile uint32_t *)target = value >> 7;
	}
	return NULL;
}

/* Another thread writes rubbish into the word while signals come and go; then all is as before. */
static void word_written_by_another_thread(void)
{
	pthread_t thread;
	int before;

	record(SIGUSR1, 0);
	record(SIGUSR2, 0);
	enroll();
	CHECK(pthread_create(&thread, NULL, scribble, (void *)&word) == 0);
	for (int i = 0; i < 3000; i++) {
		raise_here(SIGUSR1);
		sigfastblock(PR_SIGFASTBLOCK_UNBLOCK, NULL);
		sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL);
		sigfastblock(PR_SIGFASTBLOCK_SETPTR, &word);
	}
	quit = 1;
	pthread_join(thread, NULL);
	word = 0;
	raise_here(SIGUSR2);
	before = handled;
	CHECK(before > 0);
	raise_here(SIGUSR1);
	CHECK(handled == before + 1);
}

static int fault_file(volatile uint32_t *page, int user_mode_only)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (unsigned long)page, 4096 }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	int file = syscall(SYS_userfaultfd, O_CLOEXEC | (user_mode_only ? UFFD_USER_MODE_ONLY : 0));

	CHECK(file >= 0 && ioctl(file, UFFDIO_API, &api) == 0 && ioctl(file, UFFDIO_REGISTER, &range) == 0);
	madvise((void *)page, 4096, MADV_DONTNEED);
	return file;
}

struct filler {
	int file;
	uint32_t value;
	volatile int asked;
};

static void *fill_late(void *pointer)
{
	static uint32_t page[1024] __attribute__((aligned(4096)));
	struct filler *filler = pointer;
	struct uffd_msg message;
	struct uffdio_copy copy;

	CHECK(read(filler->file, &message, sizeof(message)) == sizeof(message));
	filler->asked = 1;
	nap(0.05);
	page[0] = filler->value;
	copy = (struct uffdio_copy){ .dst = message.arg.pagefault.address & ~4095ull, .src = (unsigned long)page, .len = 4096 };
	CHECK(ioctl(filler->file, UFFDIO_COPY, &copy) == 0);
	return NULL;
}

/* The page of the word is filled in by another thread, with a count the thread never raised: what it says, counts. */
static void word_filled_by_userfaultfd(void)
{
	struct filler filler = { .value = 0x10 };
	volatile uint32_t *page = word_on_new_page(PROT_READ | PROT_WRITE);
	pthread_t thread;

	record(SIGUSR2, 0);
	page[0] = 0;
	filler.file = fault_file(page, 0);
	CHECK(pthread_create(&thread, NULL, fill_late, &filler) == 0);
	raise_here(SIGUSR1);
	pthread_join(thread, NULL);
	CHECK(filler.asked && handled == 0 && page[0] == 0x11);
	page[0] = 0;
	raise_here(SIGUSR2);
	CHECK(handled == 2 && faults == 0);
	/* without privilege a userfaultfd serves user mode only: to the kernel the word is bad */
	page = new_page(PROT_READ | PROT_WRITE);
	CHECK(sigfastblock(PR_SIGFASTBLOCK_UNSETPTR, NULL) == 0);
	CHECK(sigfastblock(PR_SIGFASTBLOCK_SETPTR, page) == 0);
	page[0] = 0;
	fault_file(page, 1);
	expect_bad_word(page, SEGV_MAPERR);
}

/* Nobody ever fills it in: the thread waits in the kernel, and can be killed. */
static void word_never_filled(void)
{
	volatile int *shared = shared_memory();
	int status;
	pid_t child = fork();

	if (!child) {
		volatile uint32_t *page = new_page(PROT_READ | PROT_WRITE);

		page[0] = 0;
		sigfastblock(PR_SIGFASTBLOCK_SETPTR, page);
		record(SIGUSR1, 0);
		fault_file(page, 0);
		shared[0] = 1;
		raise_here(SIGUSR1);
		shared[0] = 2;
		_exit(0);
	}
	WAIT_FOR(shared[0]);
	nap(0.1);
	CHECK(shared[0] == 1 && waitpid(child, NULL, WNOHANG) == 0);
	kill(child, SIGKILL);
	status = reap(child);
	CHECK(KILLED(status, SIGKILL));
}

const struct test memory_tests[] = {
	{ "no_word_addresses", no_word_addresses },
	{ "word_unmapped", word_unmapped },
	{ "word_read_only", word_read_only },
	{ "word_unmapped_while_held", word_unmapped_while_held },
	{ "commands_on_a_bad_word", commands_on_a_bad_word },
	{ "bad_word_kills", bad_word_kills },
	{ "word_in_a_file", word_in_a_file },
	{ "word_shared_with_a_child", word_shared_with_a_child },
	{ "word_written_by_another_thread", word_written_by_another_thread },
	{ "word_filled_by_userfaultfd", word_filled_by_userfaultfd },
	{ "word_never_filled", word_never_filled },
	{ NULL, NULL },
};
