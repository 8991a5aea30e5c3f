// Prints the least stack of a thread as glibc computes it (it contains the static TLS with its surplus), in bytes.
// __pthread_get_minstack is private to glibc, and used by the JVM for the same purpose.
#include <pthread.h>
#include <stdio.h>
size_t __pthread_get_minstack(const pthread_attr_t *);
int main(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    printf("%zu\n", __pthread_get_minstack(&attributes));
    return 0;
}
