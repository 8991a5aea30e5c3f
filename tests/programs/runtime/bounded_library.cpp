// A plug-in with all that makes memory: thread-local data by TLS descriptors and by general dynamic access, initial values that are
// relocated, exceptions, allocation, an indirect function.
#include <stdexcept>
#include <string>
static thread_local int counter = 5;
static thread_local char large[9000];
static std::string text = "text";
static int same(int x) { return x; }
extern "C" {
typedef int (*function)(int);
__attribute__((visibility("hidden"))) function choose() { return same; }
int indirect(int) __attribute__((ifunc("choose")));
// 8 of 3 if the variables are fresh, more if not; less never.
int use(int x) {
    if (large[101]) return -1;
    int result = counter++;
    large[100] = 1;
    try {
        throw std::runtime_error(text);
    } catch (const std::exception &) {
        result += indirect(x);
    }
    return large[100] == 1 ? result : -1;
}
}
