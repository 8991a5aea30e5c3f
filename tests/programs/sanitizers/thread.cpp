// What ThreadSanitizer finds, or does not: the argument says which. The order of accesses is fixed by flags that it does not
// see, so that every run reports the same.
#include <cstdio>
#include <mutex>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>

#define UNSEEN __attribute__((no_sanitize("thread"), noinline))

static volatile int flag;
UNSEEN static void raise_flag() { flag = 1; }
UNSEEN static void wait_for_flag() {
    while (!flag)
        sched_yield();
}

static int shared;
static thread_local int own;
static std::mutex first, second;

static void write_shared(int value) { shared = value; }

int main(int count, char **arguments) {
    std::string mode = count > 1 ? arguments[1] : "clean";
    if (mode == "clean") {
        auto add = [] {
            for (int i = 0; i < 1000; i++) {
                std::lock_guard lock(first);
                shared += ++own > 0;
            }
        };
        std::thread one(add), two(add);
        one.join();
        two.join();
    } else if (mode == "race") {
        std::thread other([] {
            write_shared(1);
            raise_flag();
        });
        wait_for_flag();
        write_shared(2);
        other.join();
    } else if (mode == "lock-order") {
        {
            std::lock_guard one(first);
            std::lock_guard two(second);
        }
        std::lock_guard two(second);
        std::lock_guard one(first);
    } else if (mode == "unjoined") {
        static std::thread other(raise_flag);
        wait_for_flag();
        other.detach();
        usleep(100000);
    }
    std::printf("shared %d\n", shared);
}
