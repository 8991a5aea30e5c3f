// -DNODE=x: a library that says when its constructor and its destructor run. The suite links nodes into graphs.
#include "say.h"
static __attribute__((constructor)) void begin(void) { SAY("+" STRING(NODE)); }
static __attribute__((destructor)) void end(void) { SAY("-" STRING(NODE)); }
