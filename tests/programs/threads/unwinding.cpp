// 8 threads throw and catch through a library without pause while another thread opens and closes plug-ins.
#include "../dlfcn/report.h"
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>
void thrower(int depth);
static std::atomic<bool> stop{false};
static std::atomic<long> caught{0}, wrong{0};
static void work() {
    long count = 0;
    while (!stop || count < 100) {
        try {
            thrower(static_cast<int>(count % 10));
        } catch (const std::runtime_error &) {
            count++;
            continue;
        } catch (...) {
            wrong++;
        }
        wrong++;
    }
    caught += count;
}
int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++) threads.emplace_back(work);
    int opened = 0;
    for (int round = 0; round < 300; round++) {
        char file[64];
        snprintf(file, sizeof file, "./unwinding/lib%d.so", round % 3);
        void *handle = must_open(file, RTLD_NOW);
        auto function = reinterpret_cast<int (*)()>(must_find(handle, "which"));
        opened += function() == 9;
        dlclose(handle);
    }
    stop = true;
    for (auto &thread : threads) thread.join();
    printf("opened %d, caught enough %d, wrong %ld\n", opened, caught >= 800, wrong.load());
}
