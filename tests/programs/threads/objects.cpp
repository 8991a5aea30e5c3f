// thread_local objects of program and library are made and destroyed once for each thread that touches them, in threads that
// return, exit, and are cancelled.
#include "object.hpp"
#include <cstdio>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <vector>
int made, gone;
static thread_local Object object;
static void *exits(void *) {
    object.number++;
    touch_library();
    pthread_exit(nullptr);
}
static void *waits(void *) {
    object.number++;
    for (;;) pause();
}
int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++) threads.emplace_back([] { object.number += touch_library(); });
    for (auto &thread : threads) thread.join();
    std::printf("returned: made %d gone %d\n", made, gone);
    pthread_t thread;
    pthread_create(&thread, nullptr, exits, nullptr);
    pthread_join(thread, nullptr);
    std::printf("exited: made %d gone %d\n", made, gone);
    pthread_create(&thread, nullptr, waits, nullptr);
    usleep(2000);
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    std::printf("cancelled: made %d gone %d\n", made, gone);
    object.number = touch_library();
    std::printf("main: made %d gone %d\n", made, gone);
}
