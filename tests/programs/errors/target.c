/* The library that gets damaged: it has everything a loader must read. Relocations of all usual kinds, a thread-local
   variable, a constructor and a destructor, versions needed (libc). The constructor says that control has passed. */
#include <stdio.h>
#include <unistd.h>
__thread int thread_local_value = 5;
static int cells[4] = {1, 2, 3, 4};
int *pointers[4] = {cells, cells + 1, cells + 2, cells + 3};
extern int program_value;
int *program_pointer = &program_value;
static void say(const char *text, size_t length) {
    if (write(1, text, length) < 0)
        _exit(99);
}
__attribute__((constructor)) static void start(void) { say("init\n", 5); }
__attribute__((destructor)) static void end(void) { say("fini\n", 5); }
int helper(int value) { return value + 1; }
int answer(void) {
    char text[32];
    int sum = 0;
    for (int n = 0; n < 4; n++)
        sum += *pointers[n];
    return snprintf(text, sizeof text, "%d", helper(sum) + *program_pointer + thread_local_value);
}
