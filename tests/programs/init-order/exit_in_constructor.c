// A library whose constructor calls exit: only what was initialised is finalised.
#include "say.h"
#include <stdlib.h>
static __attribute__((constructor)) void begin(void) {
    SAY("+leaves");
    exit(9);
}
static __attribute__((destructor)) void end(void) { SAY("-leaves"); }
