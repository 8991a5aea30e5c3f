/* An absolute symbol does not move with its library. */
#include <stdio.h>
extern char absolute_value[], absolute_zero[];
extern int typeless;
int main(void) {
    char *value = absolute_value, *zero = absolute_zero;
    __asm__("" : "+r"(value), "+r"(zero));
    printf("%p %d %d\n", (void *)value, zero == 0, typeless);
    return 0;
}
