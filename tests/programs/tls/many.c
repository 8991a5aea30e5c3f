// Very many modules in one process: COUNT copies of a library, opened while threads run, used in an order that makes each dtv
// grow by leaps; then half of them closed and opened again.
#define _GNU_SOURCE
#include "threads.h"
enum { COUNT = 200 };
static void *handles[COUNT];
static int (*values[COUNT])(void);
static int limit;
static int use(int number) {
    int right = 0;
    for (int i = 0; i < limit; i++) {
        int which = (i * 37 + number) % limit;
        right += values[which]() == 5;
    }
    return right;
}
static void open_one(int i) {
    char file[64];
    snprintf(file, sizeof file, "./many/lib%d.so", i);
    handles[i] = must_open(file, RTLD_NOW | RTLD_LOCAL);
    values[i] = (int (*)(void))must_find(handles[i], "value");
}
static int last_only(int number) { return values[limit - 1 - number]() == 5; }
static int rest(int number) {
    int right = 0;
    for (int i = 0; i < limit; i++)
        if (i != limit - 1 - number) right += values[i]() == 5;
    return right;
}
int main(void) {
    threads_start();
    for (int i = 0; i < COUNT; i++) open_one(i);
    limit = COUNT;
    printf("last first %d", threads_do(last_only));
    printf(" the rest %d", threads_do(rest));
    printf(" main %d", use(0));
    printf(" new %d\n", threads_new(use));
    for (int i = 0; i < COUNT; i += 2) dlclose(handles[i]);
    for (int i = 0; i < COUNT; i += 2) open_one(i);
    int again = 0;
    for (int i = 0; i < COUNT; i++) again += values[i]() == (i % 2 ? 7 : 5);
    printf("again %d\n", again);
    threads_end();
    return 0;
}
