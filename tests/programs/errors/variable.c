/* Refers to a variable, which is bound at start whatever the mode. */
#include <stdio.h>
extern int variable;
int *volatile pointer = &variable;
int main(void) {
    printf("%d\n", *pointer);
    return 0;
}
