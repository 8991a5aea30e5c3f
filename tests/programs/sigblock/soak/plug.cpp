// The plug-in that the main line opens and closes: a constructor, thread-local storage, functions to be bound, an exception of
// its own. plug(n) is n + 1 + (the numbers of many.S it calls) + n.
extern "C" int function_1(), function_10(), function_100(), function_1000();
static int constructed;
static thread_local int calls;

struct plug_fault { int value; };

__attribute__((constructor)) static void construct() { constructed = 1; }

__attribute__((noinline)) static int inner(int n) {
    if (n >= 0) throw plug_fault{n};
    return function_100();
}

extern "C" int plug(int n) {
    int sum = n + constructed * ++calls + function_1() + function_10();
    try {
        inner(n);
    } catch (const plug_fault &fault) {
        sum += fault.value;
    }
    return sum + function_1000() + (n < 0 ? inner(n) : 0);
}
