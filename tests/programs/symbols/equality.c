/* Function addresses as the program and a library see them: its own function of the library, one of libc that is an indirect
   function, and one that is not. -DLIBRARY is the library. Compiled as position dependent code the addresses are those of
   the program's own procedure linkage table, and everybody must agree. */
#include <stdio.h>
#include <string.h>
typedef int (*number)(void);
int f(void);
number library_f(void);
void *library_strlen(void);
void *library_puts(void);
#ifdef LIBRARY
int f(void) { return 3; }
number table[] = {f};
number library_f(void) { return table[0] == f ? f : 0; }
void *library_strlen(void) { return (void *)strlen; }
void *library_puts(void) { return (void *)puts; }
#else
number own_table[] = {f};
size_t (*volatile own_strlen)(const char *) = strlen;
int main(void) {
    printf("%d %d %d %d %d %zu\n", f == library_f(), own_table[0] == library_f(), (void *)strlen == library_strlen(),
           (void *)puts == library_puts(), library_f()(), own_strlen("four"));
    return 0;
}
#endif
