// When a thread of this process sleeps in a given system call, as the kernel tells it.
#ifndef ASLEEP_H
#define ASLEEP_H
#include "cases.h"
#include <sys/syscall.h>

// Waits until the thread `task` sleeps in the system call `call`, with `first` as its first argument unless that is -1.
__attribute__((unused)) static void until_asleep(pid_t task, long call, int first) {
    char path[64], line[96];
    snprintf(path, sizeof path, "/proc/%d/syscall", task);
    for (;;) {
        int file = open(path, O_RDONLY);
        ssize_t got = file < 0 ? -1 : read(file, line, sizeof line - 1);
        if (got < 0) {
            say("cannot read %s", path);
            _exit(91);
        }
        line[got] = 0;
        close(file);
        long in;
        unsigned long argument;
        if (sscanf(line, "%ld %lx", &in, &argument) == 2 && in == call && (first < 0 || (int)argument == first)) return;
        sleep_milliseconds(1);
    }
}
#endif
