// Eight threads open, use and close plug-ins for SECONDS while eight others each do one thing without pause: bind functions for the
// first time, throw and catch, create and join threads, iterate, look symbols up, ask for addresses. Prints what each of them did at
// least, and what was wrong.
#include "../dlfcn/report.h"
#include <atomic>
#include <chrono>
#include <link.h>
#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <vector>

static std::atomic<bool> done{false};
static std::atomic<long> wrong{0};
static int in_order(struct dl_phdr_info *info, size_t, void *place) {
    // The counts of one iteration do not go back, and what is told is mapped.
    auto *last = static_cast<unsigned long long *>(place);
    wrong += info->dlpi_adds < last[0] || info->dlpi_subs < last[1] || !info->dlpi_phnum || !info->dlpi_phdr->p_type;
    last[0] = info->dlpi_adds;
    last[1] = info->dlpi_subs;
    last[2]++;
    return 0;
}
static void opens(int number) {
    char file[64];
    snprintf(file, sizeof file, "./mixed/libmixed%d.so", number % 5);
    void *handle = dlopen(file, number % 2 ? RTLD_LAZY : RTLD_NOW);
    if (!handle) {
        printf("%s\n", error_text());
        wrong++;
        return;
    }
    wrong += reinterpret_cast<int (*)(int)>(must_find(handle, "use"))(3) < 0;
    dlclose(handle);
}
static void binds(int) {
    // A library of its own, opened lazily: each first call binds.
    void *handle = must_open("./mixed/libcaller.so", RTLD_LAZY);
    wrong += reinterpret_cast<int (*)()>(must_find(handle, "calls_strong"))() != 11;
    wrong += reinterpret_cast<int (*)()>(must_find(handle, "calls_weak"))() != 12;
    dlclose(handle);
}
static void throws(int number) {
    try {
        std::vector<int>(1).at(static_cast<size_t>(number) + 2);
    } catch (const std::out_of_range &) {
        return;
    }
    wrong++;
}
static void makes(int) {
    int value = 0;
    std::thread([&] {
        static thread_local int own = 7;
        value = own++;
    }).join();
    wrong += value != 7;
}
static void iterates(int) {
    unsigned long long last[3] = {};
    dl_iterate_phdr(in_order, last);
    wrong += last[2] < 4;
}
static void looks_up(int) {
    wrong += dlsym(RTLD_DEFAULT, "puts") == nullptr || dlsym(RTLD_DEFAULT, "no_such_function") != nullptr;
}
static void asks(int) {
    Dl_info info;
    wrong += !dladdr(reinterpret_cast<void *>(puts), &info) || strcmp(base(info.dli_fname), "libc.so.6");
}
int main(int count, char **arguments) {
    if (count < 2) return 2;
    struct {
        const char *name;
        void (*act)(int);
        std::atomic<long> least{1L << 60};
    } kinds[] = {{"opens", opens}, {"binds", binds}, {"throws", throws}, {"makes", makes}, {"iterates", iterates}, {"looks", looks_up}, {"asks", asks}};
    std::vector<std::thread> threads;
    auto run = [&](auto &kind, int number) {
        threads.emplace_back([&kind, number] {
            long rounds = 0;
            while (!done) {
                kind.act(number);
                rounds++;
            }
            for (long seen = kind.least; rounds < seen && !kind.least.compare_exchange_weak(seen, rounds);) continue;
        });
    };
    for (int i = 0; i < 8; i++) run(kinds[0], i);
    for (int i = 1; i < 7; i++) run(kinds[i], i);
    run(kinds[2], 7);
    run(kinds[4], 8);
    std::this_thread::sleep_for(std::chrono::seconds(atoi(arguments[1])));
    done = true;
    for (auto &thread : threads) thread.join();
    for (auto &kind : kinds) printf("%s=%ld ", kind.name, kind.least.load());
    printf("wrong=%ld\n", wrong.load());
}
