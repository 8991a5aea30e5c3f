/* Prints whether two libraries agree about the address of the unique symbol, and its value. */
#include <stdio.h>
int *first(void);
int *second(void);
int main(void) {
    ++*first();
    printf("%d %d\n", first() == second(), *second());
    return 0;
}
