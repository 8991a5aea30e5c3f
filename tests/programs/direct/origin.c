/* Prints the number of the library found beside the program's real place. */
#include <stdio.h>
int which(void);
int main(void) {
    printf("%d\n", which());
    return 0;
}
