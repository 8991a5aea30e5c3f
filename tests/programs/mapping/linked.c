/* A program and, with -DLIBRARY, its library: each reads and writes constants, data, bss and relocated pointers of its own and of the
   other, so that a segment in the wrong place or with the wrong contents shows. */
#include <stdio.h>

#ifdef LIBRARY
#define PART(name) library_##name
#else
#define PART(name) program_##name
#endif

const char PART(text)[] = "constant text";
int PART(data)[3000] = { 1, 2, 3, [2999] = 4 };
int PART(bss)[5000];
const char *const PART(table)[] = { PART(text), PART(text) + 9 };
int *PART(pointer) = &PART(bss)[4999];

int PART(sum)(void)
{
    int sum = 0;
    for (int i = 0; i < 3000; i++)
        sum += PART(data)[i];
    for (int i = 0; i < 5000; i++)
        sum += PART(bss)[i];
    *PART(pointer) += 1;
    return sum;
}

#ifndef LIBRARY
extern int library_data[], library_bss[], library_sum(void), *library_pointer;
extern const char *const library_table[];

int main(void)
{
    printf("%d %d\n", program_sum(), library_sum());
    printf("%d %d\n", program_sum(), library_sum());
    printf("%s %s %s %s\n", program_table[0], program_table[1], library_table[0], library_table[1]);
    library_data[0] = 100;
    printf("%d %d %d\n", library_sum(), library_bss[4999], *library_pointer);
    return 0;
}
#endif
