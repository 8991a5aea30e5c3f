/* Copy relocations of a position dependent program: the program's copy is the variable for everybody, and what is copied was
   relocated before. -DLIBRARY is the library; -DSIZE=n the number of elements it has. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifndef SIZE
#define SIZE 2
#endif
typedef int (*number)(void);
extern int variable;
extern int array[SIZE];
extern number functions[2];
extern int *const constant_pointer;
extern int target;
int *library_variable(void);
void library_set(int);
int library_alias(void);
#ifdef LIBRARY
static int one(void) { return 1; }
int two(void) { return 2; }
int variable = 10;
extern int alias __attribute__((alias("variable")));
int array[SIZE] = {4, 5};
number functions[2] = {one, two};
int target = 6;
int *const constant_pointer = &target;
int *library_variable(void) { return &variable; }
void library_set(int value) { variable = value; }
int library_alias(void) { return alias; }
#else
int main(void) {
    library_set(11);
    printf("%d %d %d %d %d %d", variable, &variable == library_variable(), array[0] + array[1], functions[0](), functions[1](),
           *constant_pointer);
    setenv("ADDED_BY_LIBC", "1", 1);
    int found = 0;
    for (char **entry = environ; *entry; entry++)
        found |= __builtin_strcmp(*entry, "ADDED_BY_LIBC=1") == 0;
    printf(" %d %d\n", found, environ == __environ);
    return 0;
}
#endif
