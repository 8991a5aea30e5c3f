// The same in a program, with preinitialisers, handlers of exit, and an entry whose stack is checked by the C library's
// own aligned code. Linked with -init=legacy_init -fini=legacy_fini.
#include "report.h"
#include <stdlib.h>
int library(void);
static void preinit(int argc, char **argv, char **envp) { GIVEN("main preinit", argc, argv, envp); }
static void preinit_again(int argc, char **argv, char **envp) { GIVEN("main second preinit", argc, argv, envp); }
__attribute__((section(".preinit_array"), used)) static void (*preinits[])(int, char **, char **) = {preinit, preinit_again};
static void handler_of_constructor(void) { STACK("atexit of constructor"); }
static __attribute__((constructor)) void constructor(int argc, char **argv, char **envp) {
    GIVEN("main constructor", argc, argv, envp);
    atexit(handler_of_constructor);
}
static __attribute__((destructor)) void destructor(void) { STACK("main destructor"); }
void legacy_init(int argc, char **argv, char **envp) { GIVEN("main DT_INIT", argc, argv, envp); }
void legacy_fini(void) { STACK("main DT_FINI"); }
static void first_handler(void) { STACK("atexit first"); }
static void second_handler(void) { STACK("atexit second"); }
int main(int argc, char **argv, char **envp) {
    GIVEN("main", argc, argv, envp);
    atexit(first_handler);
    atexit(second_handler);
    return library() - 1;
}
