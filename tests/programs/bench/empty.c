/* The least program with a C library. */
int main(void) { return 0; }
