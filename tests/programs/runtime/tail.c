// A library that defines `chosen` by a resolver, which says that it was found. With ASKS its constructors and its destructor end
// in tail calls of dlsym and dlopen: those see a return address in the loader, and nothing of the library.
extern void note(int number);
static int answer(void) { return NUMBER; }
__attribute__((used)) static int (*resolve_chosen(void))(void) {
    note(NUMBER);
    return answer;
}
int chosen(void) __attribute__((ifunc("resolve_chosen")));
#ifdef ASKS
static const char name[] __asm__("name_of_chosen") __attribute__((used)) = "chosen";
static const char library[] __asm__("name_of_library") __attribute__((used)) = "libbeside.so";
#define TAIL(function, first, second, target)                                                                                  \
    __attribute__((naked, used)) static void function(void) {                                                                 \
        __asm__(first "\n" second "\n jmp " target "@PLT");                                                                  \
    }
TAIL(by_default, "xor %edi, %edi", "lea name_of_chosen(%rip), %rsi", "dlsym")
TAIL(by_next, "mov $-1, %rdi", "lea name_of_chosen(%rip), %rsi", "dlsym")
TAIL(opens, "lea name_of_library(%rip), %rdi", "mov $2, %esi", "dlopen")
__attribute__((section(".init_array"), used)) static void (*const begin[])(void) = {by_default, by_next, opens};
__attribute__((section(".fini_array"), used)) static void (*const end[])(void) = {by_next};
#endif
