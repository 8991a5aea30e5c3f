// A child of fork throws and catches, through a library, from a single-threaded and a threaded program, and has thread_local
// objects of its own.
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
void thrower(int depth);
static thread_local int local = 3;
static int child_work() {
    try {
        thrower(5);
    } catch (const std::runtime_error &) {
        local++;
        int there = 0;
        std::thread thread([&there] {
            try {
                thrower(2);
            } catch (const std::exception &) {
                there = local;
            }
        });
        thread.join();
        return local * 10 + there;
    }
    return 1;
}
static int forked() {
    pid_t child = fork();
    if (child == 0) _exit(child_work());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
int main() {
    std::printf("single %d\n", forked());
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&stop] {
            while (!stop) try {
                    thrower(3);
                } catch (const std::exception &) {
                }
        });
    int right = 0;
    for (int round = 0; round < 20; round++) right += forked() == 43;
    stop = true;
    for (auto &thread : threads) thread.join();
    std::printf("threaded %d\n", right);
}
