// Checks the blocks of the libraries whose checks the suite lists in table.c, and its own, in the main thread, in eight
// threads at the same time, and in eight one after another (which reuse stacks).
#include <pthread.h>
#include "../remainder.h"
#include <stdio.h>

extern int (*const checks[])(void);
extern const char *const names[];
extern const int count;

static __thread char own_odd[3] = {5, 6, 7};
static __thread char own_aligned[4] __attribute__((aligned(512)));
static __thread char own_zero[300];

static int wrong;
static pthread_barrier_t barrier;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void check(const char *where) {
    volatile char *odd = own_odd, *aligned = own_aligned, *zero = own_zero;
    int bad = remainder_of(aligned, 512) || odd[0] != 5 || odd[2] != 7 || aligned[3];
    for (unsigned i = 0; i < sizeof own_zero; i++) bad |= zero[i] != 0;
    for (unsigned i = 0; i < sizeof own_zero; i++) zero[i] = (char)0xff;
    odd[0] = odd[2] = aligned[3] = 98;
    pthread_mutex_lock(&lock);
    if (bad) printf("%s: the program's own block is wrong\n", where);
    wrong |= bad;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < count; i++) {
        int found = checks[i]();
        if (!found) continue;
        pthread_mutex_lock(&lock);
        printf("%s: %s is wrong: %d\n", where, names[i], found);
        wrong = 1;
        pthread_mutex_unlock(&lock);
    }
}

static void *at_once(void *unused) {
    (void)unused;
    pthread_barrier_wait(&barrier);
    check("eight threads at once");
    pthread_barrier_wait(&barrier);
    return 0;
}

static void *alone(void *unused) {
    (void)unused;
    check("a thread on a used stack");
    return 0;
}

int main(void) {
    pthread_t ids[8];
    check("main thread");
    pthread_barrier_init(&barrier, 0, 8);
    for (int i = 0; i < 8; i++)
        if (pthread_create(&ids[i], 0, at_once, 0)) return 2;
    for (int i = 0; i < 8; i++) pthread_join(ids[i], 0);
    for (int i = 0; i < 8; i++)
        if (pthread_create(&ids[0], 0, alone, 0) || pthread_join(ids[0], 0)) return 2;
    printf("%d libraries %s\n", count, wrong ? "wrong" : "right");
    return wrong;
}
