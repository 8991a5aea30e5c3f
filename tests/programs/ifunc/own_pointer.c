// The same in the program itself: .data and .tdata hold addresses of the program's own indirect function, and a pointer
// to one that a library owns.
#include <pthread.h>
#include <stdio.h>
int from_library(void);
static int chosen(void) { return 42; }
static int (*choose(void))(void) { return chosen; }
int own(void) __attribute__((ifunc("choose")));
int (*data)(void) = own;
__thread int (*local)(void) = own;
__thread int (*foreign)(void) = from_library;
static void *thread(void *unused) {
    (void)unused;
    printf("data %d local %d foreign %d\n", data(), local(), foreign());
    return 0;
}
int main(void) {
    thread(0);
    pthread_t id;
    return pthread_create(&id, 0, thread, 0) || pthread_join(id, 0);
}
