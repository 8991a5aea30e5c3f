/* Calls a function by each of two needed names and prints how often a library was initialised. */
#include <stdio.h>
int initialised;
int first(void);
int second(void);
int main(void) {
    printf("%d %d %d\n", first(), second(), initialised);
    return 0;
}
