// A thread uses a thread_local object of a plug-in, the plug-in is closed, the thread ends: the object's destructor runs, and
// the next close takes the plug-in away.
#include "../dlfcn/report.h"
#include <cstdio>
#include <pthread.h>
static pthread_barrier_t barrier;
static int (*touch)();
static void *work(void *) {
    std::printf("touched %d\n", touch());
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return nullptr;
}
int main() {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    pthread_barrier_init(&barrier, nullptr, 2);
    for (int round = 0; round < 2; round++) {
        void *handle = must_open("./libdestructor.so", RTLD_NOW);
        touch = reinterpret_cast<int (*)()>(must_find(handle, "touch"));
        pthread_t thread;
        pthread_create(&thread, nullptr, work, nullptr);
        pthread_barrier_wait(&barrier);
        dlclose(handle);
        std::printf("closed, mapped %d\n", mapped("libdestructor.so"));
        pthread_barrier_wait(&barrier);
        pthread_join(thread, nullptr);
        std::printf("ended\n");
        handle = must_open("./libdestructor.so", RTLD_NOW);
        dlclose(handle);
        std::printf("closed again, mapped %d\n", mapped("libdestructor.so"));
    }
}
