// Two threads, each with its own value of thread-local variables of the program and of a library, for a debugger to print.
#include <pthread.h>
#include <unistd.h>
extern __thread int library_local;
__thread int program_local = 10;
__attribute__((noinline)) void stop_here(void) { __asm__ volatile("" ::: "memory"); }
static pthread_barrier_t barrier;
static void *thread(void *unused) {
    (void)unused;
    program_local = 21;
    library_local = 31;
    pthread_barrier_wait(&barrier);
    pause();
    return 0;
}
int main(void) {
    pthread_t id;
    pthread_barrier_init(&barrier, 0, 2);
    if (pthread_create(&id, 0, thread, 0)) return 2;
    pthread_barrier_wait(&barrier);
    library_local = 30;
    program_local = 20;
    stop_here();
    return 0;
}
