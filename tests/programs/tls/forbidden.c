// The accesses that make blocks and make the dtv grow enter no allocator of the user's: 40 modules opened, the allocator
// forbidden, each module used in threads that exist and in main; closed, opened again and used again.
#define _GNU_SOURCE
#include "threads.h"
enum { COUNT = 40 };
static void *handles[COUNT];
static int (*values[COUNT])(void);
static int use(int number) {
    int right = 0;
    for (int i = 0; i < COUNT; i++) right += values[(i * 7 + number) % COUNT]() == 5;
    return right;
}
static void open_all(void) {
    for (int i = 0; i < COUNT; i++) {
        char file[64];
        snprintf(file, sizeof file, "./many/lib%d.so", i);
        handles[i] = must_open(file, RTLD_NOW | RTLD_LOCAL);
        values[i] = (int (*)(void))must_find(handles[i], "value");
    }
}
int main(void) {
    int *forbidden = must_find(RTLD_DEFAULT, "forbidden"), *allocations = must_find(RTLD_DEFAULT, "allocations");
    threads_start();
    for (int round = 0; round < 2; round++) {
        open_all();
        *forbidden = 1;
        int sum = use(0) + threads_do(use);
        *forbidden = 0;
        printf("right %d\n", sum);
        for (int i = 0; i < COUNT; i++) dlclose(handles[i]);
    }
    threads_end();
    printf("allocator used %d\n", *allocations > 0);
    return 0;
}
