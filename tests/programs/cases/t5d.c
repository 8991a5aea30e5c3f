// The odd library between the aligned ones.
__thread char one = 3;
char odd(void) { return one; }
