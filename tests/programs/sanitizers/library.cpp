// A library that suite `sanitizers` links and loads: its frames must have names in the reports.
#include <cstdlib>
#include <stdexcept>

static thread_local char *kept;

extern "C" int library_read(const int *values, int index) { return values[index]; }

extern "C" void library_throw(int value) { throw std::runtime_error(value ? "thrown by the library" : ""); }

// Reachable from this library's thread-local variable only.
extern "C" void library_keep() {
    kept = static_cast<char *>(std::malloc(100));
    kept[0] = 1;
}

extern "C" __attribute__((noinline)) void library_leak() {
    char *volatile lost = static_cast<char *>(std::malloc(77));
    lost[0] = 1;
    lost = nullptr;
}
