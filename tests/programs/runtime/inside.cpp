// What a callback of dl_iterate_phdr may do: open, close, ask, look up, bind for the first time, throw; alone (`alone`), or while
// other threads do the same and open and close (`together`).
#include "../dlfcn/report.h"
#include <atomic>
#include <link.h>
#include <stdexcept>
#include <thread>
#include <vector>

static std::atomic<long> wrong{0};
static int acts(struct dl_phdr_info *info, size_t, void *place) {
    long &visited = *static_cast<long *>(place);
    void *handle = must_open("./inside/libuser.so", RTLD_LAZY);
    wrong += reinterpret_cast<int (*)()>(must_find(handle, "calls_strong"))() != 11;
    Dl_info found;
    wrong += !dladdr(reinterpret_cast<void *>(puts), &found) || strcmp(base(found.dli_fname), "libc.so.6");
    // Another thread may have closed what is told; it stays mapped.
    wrong += info->dlpi_phnum && !info->dlpi_phdr->p_type;
    wrong += dlsym(RTLD_DEFAULT, "puts") == nullptr;
    wrong += dlclose(handle) != 0;
    try {
        throw std::runtime_error("inside");
    } catch (const std::exception &) {
        visited++;
    }
    return 0;
}
static int leaves(struct dl_phdr_info *, size_t, void *) { throw std::runtime_error("out"); }
static long rounds(int count) {
    long visited = 0;
    for (int round = 0; round < count; round++) {
        dl_iterate_phdr(acts, &visited);
        try {
            dl_iterate_phdr(leaves, nullptr);
            wrong++;
        } catch (const std::runtime_error &) {
        }
    }
    return visited;
}
int main(int count, char **arguments) {
    if (count < 2) return 2;
    if (!strcmp(arguments[1], "alone")) {
        printf("visited %d, wrong %ld\n", rounds(1) >= 4, wrong.load());
        return 0;
    }
    std::vector<std::thread> threads;
    std::atomic<bool> done{false};
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] { wrong += rounds(20) < 80; });
    std::vector<std::thread> openers;
    for (int i = 0; i < 2; i++)
        openers.emplace_back([&, i] {
            while (!done) dlclose(must_open(i ? "./inside/libone.so" : "./inside/libtwo.so", RTLD_NOW));
        });
    for (auto &thread : threads) thread.join();
    done = true;
    for (auto &thread : openers) thread.join();
    printf("wrong %ld\n", wrong.load());
}
