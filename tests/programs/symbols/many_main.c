/* Calls all functions of many.c and prints how many answered with their own number; a weak one that exists nowhere is 0. */
#include <stdio.h>
#define ONE(n) int f_##n(void);
#define ROW(h) ONE(h##0) ONE(h##1) ONE(h##2) ONE(h##3) ONE(h##4) ONE(h##5) ONE(h##6) ONE(h##7) \
    ONE(h##8) ONE(h##9) ONE(h##a) ONE(h##b) ONE(h##c) ONE(h##d) ONE(h##e) ONE(h##f)
#define ALL ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7) ROW(8) ROW(9) ROW(a) ROW(b) ROW(c) ROW(d) ROW(e) ROW(f)
ALL
#undef ONE
int nowhere(void) __attribute__((weak));
int main(void) {
    int right = 0;
#define ONE(n) right += f_##n() == 0x##n;
    ALL
    printf("%d %d\n", right, nowhere ? nowhere() : 0);
    return 0;
}
