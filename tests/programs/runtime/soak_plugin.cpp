// A plug-in that throws and catches across its boundary, with thread-local storage and a static object.
#include <atomic>
#include <stdexcept>
#include <string>
extern "C" int provided(int);
static thread_local std::atomic<int> calls{0};
struct Counted {
    std::atomic<int> value{0};
    Counted() { value = 6; }
    ~Counted() { value = 0; }
};
static Counted counted;
extern "C" void soak_throws(int value) { throw std::runtime_error(std::to_string(provided(value) + counted.value)); }
extern "C" int soak_calls() { return ++calls; }
