// One thread opens a library whose constructor waits. Meanwhile (`free`) the others throw, look up, iterate, ask for addresses, bind,
// create threads, open and close other libraries, and get the handle of the library itself without waiting if they only look for it;
// then the constructor may end. Or (`waits`) two threads open it, and one that needs it: they get their handles after its end.
#include "../dlfcn/report.h"
#include <atomic>
#include <link.h>
#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>

int begun, ended;
int pipes[2][2];
static std::atomic<int> early{0}, got{0};

static int nothing(struct dl_phdr_info *, size_t, void *) { return 0; }
static void meanwhile() {
    int caught = 0;
    try {
        throw std::runtime_error("meanwhile");
    } catch (const std::exception &) {
        caught = 1;
    }
    printf("caught %d, looked up %d, iterated %d, of %s\n", caught, dlsym(RTLD_DEFAULT, "puts") != nullptr,
           dl_iterate_phdr(nothing, nullptr) == 0, object_of(reinterpret_cast<void *>(puts)));
    int made = 0;
    std::thread([&] { made = 1; }).join();
    void *other = must_open("./sleeping/libother.so", RTLD_LAZY);
    printf("made %d, bound %d", made, reinterpret_cast<int (*)()>(must_find(other, "calls"))());
    printf(", closed %d\n", dlclose(other));
    printf("ended %d\n", ended);
}
static void opens(const char *file, const char *name, int want) {
    void *handle = must_open(file, RTLD_NOW);
    early += ended == 0;
    got += reinterpret_cast<int (*)()>(must_find(handle, name))() == want;
}
int main(int count, char **arguments) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if (count < 2 || pipe(pipes[0]) || pipe(pipes[1])) return 2;
    std::thread first(opens, "./sleeping/libsleeping.so", "value", 1);
    char byte = 0;
    if (read(pipes[0][0], &byte, 1) != 1) return 2;
    std::thread others[3];
    const bool waits = !strcmp(arguments[1], "waits");
    if (waits) {
        others[0] = std::thread(opens, "./sleeping/libsleeping.so", "value", 1);
        others[1] = std::thread(opens, "./sleeping/libneeding.so", "second", 11);
        others[2] = std::thread(opens, "./sleeping/libneeding.so", "second", 11);
        // They would have come back by now if they did not wait; more time only makes a wrong loader more certain to be seen.
        usleep(300000);
    } else {
        meanwhile();
    }
    if (write(pipes[1][1], &byte, 1) != 1) return 2;
    first.join();
    for (auto &other : others)
        if (other.joinable()) other.join();
    printf("early %d, right %d\n", early.load(), got.load());
}
