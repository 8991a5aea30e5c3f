// A library with one thread-local variable, and `which` as in node.c.
__thread int thread_value = 9;
int shared_value = 3;
int which(void) { return thread_value; }
