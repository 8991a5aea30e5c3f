// What cxm.cpp and cxa.cpp share.
#include <stdexcept>
#include <string>
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};
void thrower(int);
std::string &get_text();
