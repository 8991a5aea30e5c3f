// A library whose constructor and destructor tell how many sections are open.
#define _GNU_SOURCE
#include "../semantics/section.h"
#include <stdio.h>
int told = 99;
__attribute__((constructor)) static void constructor(void) { told = (int)depth(); }
__attribute__((destructor)) static void destructor(void) { printf("destructor of a library %u\n", depth()); }
