// aside: under libsigblock, preloaded or linked. Whose functions a program gets, how dlsym answers for what is replaced, and
// whether a handler waits for a section's end. Prints KEY=VALUE.
#define _GNU_SOURCE
#include "sigblock.h"
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static volatile int runs, word_in_handler = -1;
static void handler(int number) { runs += number == SIGUSR1, word_in_handler = (int)*sigblock_word(); }

static int by_library(void *address) {
    Dl_info information;
    return dladdr(address, &information) && strstr(information.dli_fname, "libsigblock.so") != NULL;
}

// How many sections the callbacks of an iteration find open; the first one sleeps, which ends its section.
static unsigned found[2];
static int visit(struct dl_phdr_info *information, size_t size, void *number) {
    (void)information, (void)size;
    int *visits = number;
    if (*visits < 2) found[*visits] = *sigblock_word() >> 4;
    if ((*visits)++ == 0) ppoll(NULL, 0, &(struct timespec){0, 1}, NULL);
    return *visits == 2;
}

int main(void) {
    struct sigaction action = {.sa_handler = handler}, old;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR1, NULL, &old);
    sigblock_register();
    sigblock_enter();
    unsigned inside = *sigblock_word();
    raise(SIGUSR1);
    int early = runs;
    sigblock_leave();
    int visits = 0;
    dl_iterate_phdr(visit, &visits);
    void *library = dlopen("libc.so.6", RTLD_NOW), *loader = dlopen("ld-elf.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *by_handle = dlsym(library, "sigaction");
    unsigned *(*loaders)(void) = loader ? (unsigned *(*)(void))dlsym(loader, "sigblock_word") : NULL;
    printf("library=%d inside=%#x early=%d late=%d in_handler=%#x read_back=%d word=%d by_handle=%d loaders=%d first=%u second=%u closed=%u backend=%s released=%d\n",
           by_library((void *)sigblock_enter), inside, early, runs, word_in_handler, old.sa_handler == handler,
           *sigblock_word(), by_handle && by_handle == dlsym(RTLD_DEFAULT, "sigaction"), loaders && loaders() == sigblock_word(),
           found[0], found[1], *sigblock_word() >> 4, sigblock_backend(), sigblock_release());
    return 0;
}
