// Built without PIC: `pointer` is copied into this program. Prints what the pointers lead to, here and in new threads.
#include <pthread.h>
#include <stdio.h>
extern int (*pointer)(void);
int call_thread_pointer(void);
int pointers_agree(void);
static void *thread(void *unused) {
    (void)unused;
    return (void *)(long)call_thread_pointer();
}
int main(void) {
    printf("copy %d\n", pointer ? pointer() : -1);
    printf("thread-local %d\n", call_thread_pointer());
    printf("same %d\n", pointers_agree());
    for (int i = 0; i < 2; i++) {
        pthread_t id;
        void *result;
        if (pthread_create(&id, 0, thread, 0) || pthread_join(id, &result)) return 2;
        printf("in a thread %ld\n", (long)result);
    }
    return 0;
}
