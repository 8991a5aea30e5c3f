// A static member of a template is STB_GNU_UNIQUE: one address in the whole process, also in a library that prefers its own
// definitions. -DGETTER=f returns it.
template <typename T> struct Holder {
    static int member;
};
template <typename T> int Holder<T>::member = 5;
extern "C" int *GETTER() { return &Holder<int>::member; }
