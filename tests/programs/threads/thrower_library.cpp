// Throws from some depth.
#include <stdexcept>
void thrower(int depth) {
    if (depth > 0) thrower(depth - 1);
    throw std::runtime_error("deep");
}
