/* A position-dependent program that refers to a library's data directly, so that every object gets an R_X86_64_COPY. */
#include <stdio.h>

struct entry { int (*function)(int); const char *name; };
struct chain { struct chain *self; int value; };
extern int copied_number, copied_array[4], *copied_pointer, copied_zero[1000], alias_of_original;
extern const struct entry copied_table[2];
extern struct chain copied_chain;
extern int library_sees(void), *library_address_of_array(void);
extern void library_sets(int);
#ifdef SIZED
extern int sized[];
#endif

int main(void)
{
    printf("%d %d %d\n", copied_number, copied_array[3], *copied_pointer);
    for (int i = 0; i < 2; i++)
        printf("%s %d\n", copied_table[i].name, copied_table[i].function(7));
    printf("%d %d\n", copied_chain.self == &copied_chain, copied_chain.self->value);
    printf("%d %d\n", library_address_of_array() == copied_array, copied_pointer == &copied_array[2]);
    copied_number = 100;
    copied_array[0] = 200;
    copied_chain.value = 300;
    printf("%d\n", library_sees());
    library_sets(1000);
    printf("%d %d %d\n", copied_number, alias_of_original, copied_zero[999]);
#ifdef SIZED
    printf("%d %d\n", sized[0], sized[1]);
#endif
    return 0;
}
