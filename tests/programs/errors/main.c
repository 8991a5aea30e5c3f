/* Says when it begins, and what the library answers. */
#include <stdio.h>
#include <unistd.h>
int program_value = 7;
int answer(void);
int main(void) {
    if (write(1, "main\n", 5) < 0)
        return 99;
    printf("answer %d\n", answer());
    fflush(stdout);
    return 0;
}
