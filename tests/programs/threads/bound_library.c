// 64 functions that return their argument plus one.
#include "names.h"
#define DEFINE(n) long f##n(long x) { return x + 1; }
FUNCTIONS(DEFINE)
