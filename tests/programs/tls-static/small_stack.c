// small_stack SIZE...: starts a thread on a stack of each size (0: PTHREAD_STACK_MIN), allocated by the C library and by
// the program, and prints the result of each pthread_create (0, or the error's number).
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static __thread long value = 5;
static void *thread(void *unused) {
    (void)unused;
    return (void *)value++;
}

static int start(size_t size, void *stack) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    int error = stack ? pthread_attr_setstack(&attributes, stack, size) : pthread_attr_setstacksize(&attributes, size);
    if (error) return 1000 + error;
    pthread_t id;
    void *result;
    error = pthread_create(&id, &attributes, thread, 0);
    if (error) return error;
    pthread_join(id, &result);
    return result == (void *)5 ? 0 : 2000;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        size_t size = strtoul(argv[i], 0, 0);
        if (!size) size = PTHREAD_STACK_MIN;
        void *stack = aligned_alloc(4096, size);
        printf("%zu: own %d given %d\n", size, start(size, 0), start(size, stack));
        free(stack);
    }
    return 0;
}
