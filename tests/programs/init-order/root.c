// The program above a graph of nodes.
#include "say.h"
static __attribute__((constructor)) void begin(void) { SAY("+main"); }
static __attribute__((destructor)) void end(void) { SAY("-main"); }
int main(void) {
    SAY("main");
    return 0;
}
