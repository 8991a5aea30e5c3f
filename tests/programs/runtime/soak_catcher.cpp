// Stays loaded: calls what a plug-in gave it, and catches what that throws.
#include <cstdlib>
#include <stdexcept>
extern "C" int soak_catch(void (*throws)(int), int value) {
    try {
        throws(value);
    } catch (const std::exception &caught) {
        return std::atoi(caught.what());
    }
    return -1;
}
