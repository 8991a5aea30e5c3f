// What threads do without loading anything by name: each subject prints one line. Threads are created and joined, detached,
// cancelled deferred and at once, exited; stacks come back from glibc's cache with thread-local data zeroed; attributes, robust
// mutexes, keys.
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static __thread char zeros[5000];
static __thread int initialised = 7;
static pthread_key_t key;
static int destroyed, cleaned;

static void destroy(void *value) {
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
    free(value);
}
static void clean(void *unused) {
    (void)unused;
    __atomic_fetch_add(&cleaned, 1, __ATOMIC_SEQ_CST);
}

// The address of a local variable if everything thread-local is as in a new thread, else NULL.
static void *fresh(void *unused) {
    (void)unused;
    int right = initialised == 7 && errno == 0 && pthread_getspecific(key) == NULL;
    for (unsigned i = 0; i < sizeof zeros; i++) right &= zeros[i] == 0;
    memset(zeros, 1, sizeof zeros);
    initialised = 8;
    errno = 5;
    pthread_setspecific(key, malloc(16));
    return right ? (void *)pthread_self() : NULL;
}
static void *exits(void *value) {
    pthread_cleanup_push(clean, NULL);
    pthread_exit(value);
    pthread_cleanup_pop(0);
}
static void *waits(void *unused) {
    pthread_cleanup_push(clean, NULL);
    for (;;) pause();
    pthread_cleanup_pop(0);
    return unused;
}
static volatile int spinning;
static void *spins(void *unused) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_cleanup_push(clean, NULL);
    spinning = 1;
    for (;;) __asm__ volatile("pause");
    pthread_cleanup_pop(0);
    return unused;
}
static void *refuses(void *unused) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
    usleep(1000);
    (void)unused;
    return (void *)5L;
}
static pthread_mutex_t robust;
static void *dies(void *unused) {
    pthread_mutex_lock(&robust);
    return unused;
}
static sem_t done;
static void *detached(void *unused) {
    sem_post(&done);
    return unused;
}
static void *measures(void *unused) {
    (void)unused;
    pthread_attr_t attributes;
    void *low;
    size_t size, guard;
    char here;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_getguardsize(&attributes, &guard);
    int inside = &here > (char *)low && &here < (char *)low + size;
    pthread_attr_destroy(&attributes);
    printf("stack: inside %d size %zu guard %zu\n", inside, size, guard);
    return NULL;
}
static volatile sig_atomic_t signalled;
static void note(int number) { signalled = number; }

int main(void) {
    pthread_t thread, threads[8];
    void *result;
    pthread_key_create(&key, destroy);
    int right = 0, reused = 0;
    void *before = NULL;
    for (int round = 0; round < 100; round++) {
        pthread_create(&thread, NULL, fresh, NULL);
        pthread_join(thread, &result);
        right += result != NULL;
        reused += result == before;
        before = result;
    }
    printf("one after another %d, stack reused %d, keys destroyed %d\n", right, reused, destroyed);
    right = 0;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, fresh, NULL);
        for (int i = 0; i < 8; i++) {
            pthread_join(threads[i], &result);
            right += result != NULL;
        }
    }
    printf("eight at a time %d, keys destroyed %d\n", right, destroyed);
    pthread_create(&thread, NULL, exits, (void *)9L);
    pthread_join(thread, &result);
    printf("exit %ld cleaned %d\n", (long)result, cleaned);
    pthread_create(&thread, NULL, waits, NULL);
    usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d cleaned %d\n", result == PTHREAD_CANCELED, cleaned);
    pthread_create(&thread, NULL, spins, NULL);
    while (!spinning) usleep(100);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled at once %d cleaned %d\n", result == PTHREAD_CANCELED, cleaned);
    pthread_create(&thread, NULL, refuses, NULL);
    pthread_join(thread, &result);
    printf("cancellation refused %ld\n", (long)result);
    sem_init(&done, 0, 0);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_create(&thread, &attributes, detached, NULL);
    printf("detached %d\n", sem_wait(&done));
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 18);
    pthread_attr_setguardsize(&attributes, 8192);
    pthread_create(&thread, &attributes, measures, NULL);
    pthread_join(thread, NULL);
    void *stack = mmap(NULL, 1 << 17, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, 1 << 17);
    pthread_create(&thread, &attributes, measures, NULL);
    pthread_join(thread, NULL);
    pthread_getattr_np(pthread_self(), &attributes);
    void *low;
    size_t size;
    pthread_attr_getstack(&attributes, &low, &size);
    printf("main stack: inside %d\n", (char *)&size > (char *)low && (char *)&size < (char *)low + size);
    pthread_attr_t standard;
    pthread_getattr_default_np(&standard);
    pthread_attr_getstacksize(&standard, &size);
    printf("default stack %zu\n", size);
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &kind);
    pthread_create(&thread, NULL, dies, NULL);
    pthread_join(thread, NULL);
    int status = pthread_mutex_lock(&robust);
    printf("robust: owner died %d", status == EOWNERDEAD);
    printf(" consistent %d", pthread_mutex_consistent(&robust));
    printf(" unlocked %d\n", pthread_mutex_unlock(&robust));
    signal(SIGUSR1, note);
    pthread_create(&thread, NULL, waits, NULL);
    pthread_kill(thread, SIGUSR1);
    while (!signalled) usleep(100);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    printf("signalled %d cleaned %d\n", signalled == SIGUSR1, cleaned);
    pthread_setname_np(pthread_self(), "renamed");
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof name);
    printf("name %s\n", name);
    return 0;
}
