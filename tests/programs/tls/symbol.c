// dlsym of thread-local variables: in the program, a library needed, one opened; the address is the calling thread's own.
#define _GNU_SOURCE
#include "threads.h"
__thread int of_program = 5;
void *place(void);
static void *handle;
static int own(int number) {
    (void)number;
    int *variable = must_find(handle, "exported");
    void *(*where)(void) = (void *(*)(void))must_find(handle, "place");
    int right = variable == where() && *variable == 2;
    *variable = 7;
    right &= *(int *)must_find(handle, "exported") == 7;
    right &= must_find(RTLD_DEFAULT, "of_program") == (void *)&of_program;
    right &= must_find(RTLD_DEFAULT, "exported_1") != NULL && *(int *)must_find(RTLD_DEFAULT, "exported_1") == 1;
    return right;
}
int main(void) {
    threads_start();
    handle = must_open("./symbol/lib2.so", RTLD_NOW | RTLD_LOCAL);
    (void)place;
    printf("main %d", own(0));
    printf(" existing %d", threads_do(own));
    threads_end();
    printf(" new %d\n", threads_new(own));
    return place() == NULL;
}
