// Every kind of initialiser and finaliser a library can have; linked with -init=legacy_init -fini=legacy_fini. Each says
// its name, whether its stack is aligned, and what it was given.
#include "report.h"
static __attribute__((constructor(101))) void early(int argc, char **argv, char **envp) { GIVEN("library constructor 101", argc, argv, envp); }
static __attribute__((constructor)) void constructor(int argc, char **argv, char **envp) { GIVEN("library constructor", argc, argv, envp); }
static __attribute__((constructor)) void second(int argc, char **argv, char **envp) { GIVEN("library second constructor", argc, argv, envp); }
static __attribute__((destructor(101))) void late(void) { STACK("library destructor 101"); }
static __attribute__((destructor)) void destructor(void) { STACK("library destructor"); }
static __attribute__((destructor)) void second_destructor(void) { STACK("library second destructor"); }
void legacy_init(int argc, char **argv, char **envp) { GIVEN("library DT_INIT", argc, argv, envp); }
void legacy_fini(void) { STACK("library DT_FINI"); }
int library(void) { return 1; }
