/* Without any C library, so that every file mapped is one of ours. With -DLIBRARY the library; the program exits with 40 + 2 if the
   library's data, constants and bss are what they should be. */
#ifdef LIBRARY
static int bss[20000];
int *const library_relro = &bss[19999];
int library_data[5000] = { [4999] = 40 };
const int library_constant = 2;
int library_value(void) { return library_data[4999] + library_constant + *library_relro; }
#else
extern int library_value(void);
void start(void) { __asm__ volatile("syscall" : : "a"(231L), "D"((long)library_value())); }
__asm__(".globl _start\n_start:\n\tandq $-16, %rsp\n\tcall start\n");
#endif
