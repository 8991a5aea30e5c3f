// A library with a thread_local object of its own.
#include "object.hpp"
static thread_local Object object;
int touch_library() { return ++object.number; }
