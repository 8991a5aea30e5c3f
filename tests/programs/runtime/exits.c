// A library whose functions register handlers: they run when it goes, once, the last first, after its destructors, whichever thread
// registered them. Handlers of the program's own wait for the exit.
#define _GNU_SOURCE
#include "../dlfcn/report.h"
#include <pthread.h>
typedef void (*function)(int);
static function registers;
static void *thread(void *number) {
    registers((int)(long)number);
    return NULL;
}
static void own(void) { puts("the program's own"); }
int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    atexit(own);
    for (int round = 0; round < 2; round++) {
        void *handle = must_open("./libexiting.so", RTLD_NOW);
        registers = (function)must_find(handle, "registers");
        registers(1);
        pthread_t other;
        pthread_create(&other, NULL, thread, (void *)2L);
        pthread_join(other, NULL);
        dlclose(handle);
        printf("closed, mapped %d\n", mapped("libexiting.so"));
    }
    registers = (function)must_find(must_open("./libexiting.so", RTLD_NOW), "registers");
    registers(3);
    puts("end");
    return 0;
}
