// The back end: how it is called, that it stays what it is, and what the environment still has of it.
#define _GNU_SOURCE
#include "../semantics/section.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static void *in_thread(void *unused) {
    (void)unused;
    return (void *)backend();
}
int main(void) {
    const char *first = backend(), *variable = getenv("LD_SIGBLOCK"), *list = getenv("LD_SIGBLOCK_MASK");
    void *in_another = 0;
    pthread_t thread;
    unsigned *word = sigblock_word ? sigblock_word() : 0;
    printf("%s environment %s %s\n", first, variable ? variable : "-", list ? list : "-");
    fflush(stdout);
    int same = 1;
    setenv("LD_SIGBLOCK", "off", 1);
    same &= !strcmp(backend(), first);
    setenv("LD_SIGBLOCK", "user", 1);
    same &= !strcmp(backend(), first);
    if (pthread_create(&thread, 0, in_thread, 0) || pthread_join(thread, &in_another)) return 92;
    same &= !strcmp((const char *)in_another, first);
    pid_t child = fork();
    // The word stays where it is, in the child as well.
    if (child == 0) _exit(strcmp(backend(), first) || (sigblock_word && sigblock_word() != word));
    int status = 1;
    waitpid(child, &status, 0);
    same &= status == 0 && (!sigblock_word || sigblock_word() == word);
    signal(SIGUSR1, count_run);
    enter();
    raise(SIGUSR1);
    printf("inside %d ", (int)runs);
    leave();
    printf("after %d same %d\n", (int)runs, same);
    return 0;
}
