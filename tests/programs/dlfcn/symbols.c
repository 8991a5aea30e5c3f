// A library with symbols of every kind for dlsym.
#include <stddef.h>
static int implementation(void) { return 5; }
static void *choose(void) { return implementation; }
int indirect(void) __attribute__((ifunc("choose")));
__asm__(".globl absolute\n.set absolute, 42\n");
__attribute__((weak)) int weak_function(void) { return 6; }
__attribute__((visibility("protected"))) int protected_function(void) { return 7; }
__attribute__((visibility("hidden"))) int hidden_function(void) { return 8; }
static int static_function(void) { return 9; }
__attribute__((weak)) int undefined_function(void);
int use(void) { return hidden_function() + static_function() + indirect(); }
int use_undefined(void) { return undefined_function ? undefined_function() : 0; }
extern const char *const strings[];
const char *const strings[] = {"relocated", NULL};
const char *relocated(void) { return strings[0]; }
