// A callback asks for addresses and looks symbols up until another thread, which was not loading anything when the callback began, has
// opened and closed a library; and a destructor iterates while another thread's callback waits for it.
#define _GNU_SOURCE
#include "../dlfcn/report.h"
#include <link.h>
#include <pthread.h>
#include <unistd.h>
static volatile int inside, opened, finalising, iterated, waited;
static void *opens(void *unused) {
    while (!inside) usleep(1000);
    dlclose(must_open("./inversion/libone.so", RTLD_NOW));
    opened = 1;
    return unused;
}
static int asks(struct dl_phdr_info *info, size_t size, void *unused) {
    Dl_info found;
    (void)info, (void)size, (void)unused;
    inside = 1;
    while (!opened)
        if (!dladdr((void *)puts, &found) || !dlsym(RTLD_DEFAULT, "puts")) return 2;
    return 1;
}
static int waits(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info, (void)size, (void)unused;
    inside = 1;
    while (!finalising) usleep(1000);
    return 1;
}
static void *iterates(void *unused) {
    waited = dl_iterate_phdr(waits, unused);
    return unused;
}
static int nothing(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info, (void)size, (void)unused;
    return 1;
}
static void iterates_at_end(void) {
    finalising = 1;
    iterated = dl_iterate_phdr(nothing, NULL);
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, opens, NULL);
    printf("asked %d\n", dl_iterate_phdr(asks, NULL));
    pthread_join(thread, NULL);
    inside = 0;
    void *handle = must_open("./inversion/libfinaliser.so", RTLD_NOW);
    *(void (**)(void))must_find(handle, "at_end") = iterates_at_end;
    pthread_create(&thread, NULL, iterates, NULL);
    while (!inside) usleep(1000);
    dlclose(handle);
    pthread_join(thread, NULL);
    printf("iterated %d, waited %d\n", iterated, waited);
    return 0;
}
