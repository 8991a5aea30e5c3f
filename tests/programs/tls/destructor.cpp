// A plug-in with a thread_local object: its destructor must run in the plug-in's own code, also after dlclose.
#include <cstdio>
struct Object {
    int number = 4;
    ~Object() { std::printf("destroyed %d\n", number); }
};
static thread_local Object object;
extern "C" int touch() { return ++object.number; }
