// The thread-local variable of threads.c that lies in a library.
__thread int library_local = 1;
