// call_work() must be 22: both the call through the PLT and the one through the pointer reach the chosen function.
#include <stdio.h>
int call_work(void);
int main(void) {
    int answer = call_work();
    printf("call_work %d\n", answer);
    return answer == 22 ? 0 : 1;
}
