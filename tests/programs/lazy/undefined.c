// undefined [call]: its library names a function that nobody defines; it is called only if asked.
#include <stdio.h>
int use(int call);
int main(int argc, char **argv) {
    (void)argv;
    printf("before\n");
    fflush(stdout);
    int answer = use(argc > 1);
    printf("after %d\n", answer);
    return 0;
}
