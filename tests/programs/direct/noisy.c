/* Says so whenever any of its code runs: an indirect function's resolver, a constructor, a destructor, the program. -DWHO is
   the name, -DLIBRARY the library. */
static void say(const char *text) {
    long length = 0, result;
    while (text[length])
        length++;
    __asm__ volatile("syscall" : "=a"(result) : "0"(1L), "D"(1L), "S"(text), "d"(length) : "rcx", "r11", "memory");
}
#define STRING(x) #x
#define QUOTE(x) STRING(x)
static int one(void) { return 1; }
static int (*resolve(void))(void) {
    say("resolver of " QUOTE(WHO) "\n");
    return one;
}
#define JOIN(a, b) a##b
#define NAME(who) JOIN(call_, who)
int NAME(WHO)(void) __attribute__((ifunc("resolve")));
int (*pointer)(void) = NAME(WHO);
__attribute__((constructor)) static void start(void) { say("constructor of " QUOTE(WHO) "\n"); }
__attribute__((destructor)) static void end(void) { say("destructor of " QUOTE(WHO) "\n"); }
#ifndef LIBRARY
int call_library(void);
int main(void) {
    say("main\n");
    return NAME(WHO)() + call_library() == 2 ? 0 : 1;
}
#endif
