/* Prints the number of the library that was found for a library of ours. */
#include <stdio.h>
int relay(void);
int main(void) {
    printf("%d\n", relay());
    return 0;
}
