/* The library that gets damaged: it has everything a loader must read. Relocations of all usual kinds, a thread-local
   variable, a constructor and a destructor, versions needed (libc). The constructor says that control has passed. */
#include <stdio.h>
__thread int thread_local_value = 5;
static int cells[4] = {1, 2, 3, 4};
int *pointers[4] = {cells, cells + 1, cells + 2, cells + 3};
extern int program_value;
int *program_pointer = &program_value;
/* By the system call itself: no relocation stands between the library's first code and the word that it runs. */
static void say(const char *text, long length) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(1L), "D"(1L), "S"(text), "d"(length) : "rcx", "r11", "memory");
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
