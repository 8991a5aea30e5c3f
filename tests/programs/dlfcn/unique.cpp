// A C++ plug-in with objects that exist once in a process: a static member of a template and a local static of an inline
// function (STB_GNU_UNIQUE). -DNUMBER=n names it.
#include <cstdio>
template <typename T> struct Holder {
    static T value;
};
template <typename T> T Holder<T>::value = 10;
inline int &counter() {
    static int count = 20;
    return count;
}
extern "C" int next_member() { return ++Holder<int>::value; }
extern "C" int next_local() { return ++counter(); }
