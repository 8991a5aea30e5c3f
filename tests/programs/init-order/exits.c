// exits HOW: destructors run on exit (also by another thread) and return, not on _exit, quick_exit or abort.
#include "say.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static __attribute__((destructor)) void destructor(void) { SAY("-main"); }
static void at_quick(void) { SAY("at_quick_exit"); }
static void *leave(void *unused) {
    (void)unused;
    exit(4);
}
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    at_quick_exit(at_quick);
    if (!strcmp(how, "return")) return 3;
    if (!strcmp(how, "exit")) exit(5);
    if (!strcmp(how, "_exit")) _exit(6);
    if (!strcmp(how, "quick_exit")) quick_exit(7);
    if (!strcmp(how, "thread")) {
        pthread_t id;
        pthread_create(&id, 0, leave, 0);
        pthread_join(id, 0);
    }
    abort();
}
