// Four threads, three thread-local variables each: of the program, of a library, of a library loaded at run time. When all are
// set, the second thread calls getppid() again and again, for a breakpoint in the C library that nobody else can hit.
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

extern __thread int library_local;
__thread int program_local;
static pthread_barrier_t all_set;
static sem_t never;

static void (*plugin_set)(int);

static void set(int number) {
    program_local = 10 * number + 1;
    library_local = 10 * number + 2;
    plugin_set(10 * number + 3);
    pthread_barrier_wait(&all_set);
}

__attribute__((noinline)) void call_forever(void) {
    for (;;) {
        getppid();
        usleep(20000);
    }
}

void *worker(void *argument) {
    int number = *(int *)argument;
    set(number);
    if (number == 2)
        call_forever();
    sem_wait(&never);
    return NULL;
}

int main(int count, char **arguments) {
    alarm(120);                                         // whatever happens to the debugger
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); // it need not be an ancestor
    void *plugin = dlopen(arguments[1], RTLD_NOW);
    if (!plugin) {
        puts(dlerror());
        return 1;
    }
    plugin_set = (void (*)(int))dlsym(plugin, "plugin_set");
    sem_init(&never, 0, 0);
    pthread_barrier_init(&all_set, NULL, 4);
    static int numbers[] = {2, 3, 4};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, worker, &numbers[i]);
    set(1);
    puts("all set");
    fflush(stdout);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
