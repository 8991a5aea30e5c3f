// The 128 callees of many.c.
#include "many.h"
#define DEFINE(n) int many_##n(int x) { return x + 0x##n; }
FUNCTIONS(DEFINE)
