// Opens the plug-in, catches what it throws, and closes it, many times; exceptions that came out of a library outlive no close.
#include "thrower.hpp"
#include "report.h"

template <typename F> static F find(void *handle, const char *name) { return reinterpret_cast<F>(must_find(handle, name)); }
static void callback(int number) { throw std::out_of_range("callback " + std::to_string(number)); }

int main() {
    int right = 0;
    for (int round = 0; round < 50; round++) {
        void *handle = must_open("./order/libthrower.so", round % 2 ? RTLD_NOW : RTLD_LAZY);
        auto standard = find<void (*)(int)>(handle, "throw_standard");
        auto own = find<void (*)(int)>(handle, "throw_own");
        auto through = find<int (*)(void (*)(int), int)>(handle, "through");
        auto catches = find<int (*)(void (*)(int), int)>(handle, "catches");
        try {
            standard(round);
        } catch (const std::runtime_error &error) {
            right += error.what() == "standard " + std::to_string(round);
        }
        try {
            own(round);
        } catch (const std::exception &error) {
            right += std::string(error.what()) == "failure";
        }
        try {
            through(callback, round);
        } catch (const std::out_of_range &error) {
            right += through(nullptr, -1) == 1;
        }
        right += catches(callback, round) == round + 1000;
        dlclose(handle);
        if (dlopen("./order/libthrower.so", RTLD_NOW | RTLD_NOLOAD)) printf("still there\n"), exit(1);
    }
    printf("caught %d\n", right);
    return 0;
}
