/* Uses its own and the library's thread-local variables in the main thread and in a second one. */
#include <pthread.h>
#include <stdio.h>

extern __thread int exported, exported_zero;
extern __attribute__((weak)) __thread int nowhere;
extern int *library_exported(void), library_sum(void);
extern void library_add(int);
__thread int mine = 17;
static __thread long aligned __attribute__((aligned(64))) = 23;

static void *use(void *name)
{
    library_add(1);
    mine++;
    exported += 10;
    exported_zero += 100;
    printf("%s: %d %d %d %d %ld %d\n", (char *)name, exported, exported_zero, library_sum(), mine, aligned,
           library_exported() == &exported);
    return 0;
}

int main(void)
{
    pthread_t thread;
    use("main");
    use("main");
    if (pthread_create(&thread, 0, use, "thread"))
        return 2;
    pthread_join(thread, 0);
    use("main");
    return 0;
}
