// What AddressSanitizer and its leak checker find, or do not: the argument says which.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

extern "C" int library_read(const int *values, int index);
extern "C" void library_throw(int value);
extern "C" void library_keep();
extern "C" void library_leak();

static thread_local char *reachable;

static int clean() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] {
            char *own = reachable = static_cast<char *>(std::malloc(50));
            try {
                library_throw(1);
            } catch (const std::exception &error) {
                std::string text = error.what();
                std::memcpy(own, text.data(), 5);
            }
            std::free(own);
        });
    for (auto &thread : threads)
        thread.join();
    // At the end only thread-local variables lead to these two.
    reachable = static_cast<char *>(std::malloc(50));
    library_keep();
    std::puts("clean");
    return 0;
}

// As `library_keep`, in a copy of the library that is loaded at run time: its block is no static one.
static int plugin(const char *function) {
    void *handle = dlopen("./libplugin.so", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        std::puts(dlerror());
        return 1;
    }
    reinterpret_cast<void (*)()>(dlsym(handle, function))();
    std::puts("called");
    // The leak checker ends the process when its own library is finalised, whose turn that is among the others' is not shown here.
    std::fflush(stdout);
    return 0;
}

static int globals[4] = {1, 2, 3, 4};

int main(int count, char **arguments) {
    std::string mode = count > 1 ? arguments[1] : "clean";
    if (mode == "clean")
        return clean();
    if (mode == "use-after-free") {
        auto *values = new int[4]();
        delete[] values;
        return library_read(values, 1);
    }
    if (mode == "heap-overflow") {
        auto *values = new int[4]();
        int result = library_read(values, 4);
        delete[] values;
        return result;
    }
    if (mode == "stack-overflow") {
        int values[4] = {};
        return library_read(values, 4);
    }
    if (mode == "global-overflow")
        return library_read(globals, 4);
    if (mode == "in-a-thread") {
        std::thread([] { std::printf("%d\n", library_read(new int[2](), 2)); }).join();
        return 0;
    }
    if (mode == "leak") {
        library_leak();
        return 0;
    }
    if (mode == "plugin-keeps")
        return plugin("library_keep");
    if (mode == "plugin-leaks")
        return plugin("library_leak");
    if (mode == "segmentation-fault") {
        volatile int *nowhere = nullptr;
        return *nowhere;
    }
    return 99;
}
