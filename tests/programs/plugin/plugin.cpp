// A C++ plug-in with everything that makes memory: thread-local data, static objects, exceptions, allocation, an
// indirect function, a table of virtual functions.
#include "plugin.hpp"
#include <map>
#include <stdexcept>
#include <string>
static thread_local int counter = 5;
static thread_local char large[20000] = {1};
// Not thread-local: its destructor would keep the plug-in as long as a thread that has used it.
static std::string text = "text";
static std::map<int, std::string> table = {{1, "one"}, {2, "two"}};
static int twice(int x) { return 2 * x; }
extern "C" {
typedef int (*function)(int);
__attribute__((visibility("hidden"))) function choose() { return twice; }
int indirect(int) __attribute__((ifunc("choose")));
}
namespace {
struct Real : Plugin {
    int use(int x) override {
        text = std::string("text") + "x";
        large[100]++;
        try {
            if (x % 2) throw std::out_of_range("odd");
            throw std::runtime_error("even");
        } catch (const std::exception &) {
        }
        return counter++ + indirect(x) + static_cast<int>(table.size()) + static_cast<int>(text.size()) + large[0] + large[100];
    }
    ~Real() override = default;
};
} // namespace
extern "C" Plugin *make() { return new Real; }
