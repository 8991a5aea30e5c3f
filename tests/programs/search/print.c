/* Prints the number of the library that was found. */
#include <stdio.h>
int which(void);
int main(void) {
    printf("%d\n", which());
    return 0;
}
