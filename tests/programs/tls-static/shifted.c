// Prints the address of a thread-local block modulo 4096, in the main thread and in two others.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
uintptr_t address_of_first(void);
long contents(void);
static void *thread(void *unused) {
    (void)unused;
    printf("%#lx %ld\n", (unsigned long)(address_of_first() % 4096), contents());
    return 0;
}
int main(void) {
    pthread_t id;
    thread(0);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&id, 0, thread, 0) || pthread_join(id, 0)) return 2;
    return 0;
}
