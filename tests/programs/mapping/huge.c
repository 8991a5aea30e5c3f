/*
 * Opens the library that its argument names and looks at its data: every word, writing included, and what the mapping of the
 * numbers is of. Closes it: nothing of it may be left. Prints file or anonymous.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (3 << 17)

static const char *mapped(const void *address)
{
	static char line[4096];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;

	while (maps && fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= (unsigned long)address && (unsigned long)address < end) {
			fclose(maps);
			return strchr(line, '/') ? "file" : "anonymous";
		}
	if (maps)
		fclose(maps);
	return "nothing";
}

static int fail(const char *what)
{
	printf("wrong: %s\n", what);
	return 1;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

	if (!library)
		return fail(dlerror());
	unsigned long *numbers = dlsym(library, "numbers"), *zeros = dlsym(library, "zeros");
	unsigned long **addresses = dlsym(library, "addresses");

	if (addresses[0] != numbers || addresses[1] != &numbers[WORDS - 1])
		return fail("addresses of numbers");
	if (addresses[2] != zeros || addresses[3] != &zeros[WORDS - 1])
		return fail("addresses of zeros");
	for (int i = 0; i < WORDS; i++)
		if (numbers[i]++ != 0x1122334455667788 || zeros[i]++ != 0)
			return fail("a value");
	printf("%s ", mapped(&numbers[WORDS / 2]));
	if (dlclose(library))
		return fail("dlclose");
	printf("%s %s %s\n", mapped(&numbers[WORDS / 2]), mapped(zeros), mapped(&zeros[WORDS - 1]));
	return 0;
}
