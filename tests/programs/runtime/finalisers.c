// What a destructor may do while its library is being closed; the case is the argument.
#define _GNU_SOURCE
#include "../dlfcn/report.h"
#include <pthread.h>
#define FILE_NAME "./finalisers/libfinaliser.so"
typedef int (*function)(void);
static void *own, *kept, *other;
static int call(void *handle) { return ((function)must_find(handle, "call"))(); }

static void looks_up(void) {
    printf("by handle %d, by address %s, default %d\n", call(own), object_of(must_find(own, "call")), dlsym(RTLD_DEFAULT, "puts") != NULL);
}
static void opens_and_closes(void) {
    void *again = must_open(FILE_NAME, RTLD_NOW);
    printf("the same %d, %d", again == own, call(again));
    printf(", closed %d\n", dlclose(again));
}
static void keeps(void) {
    kept = must_open(FILE_NAME, RTLD_NOW);
    printf("kept %d\n", call(kept));
}
static void closes_itself(void) {
    int refused = dlclose(own) != 0;
    printf("closed once more %d: %s\n", refused, error_text());
}
static void opens_another(void) {
    other = must_open("./finalisers/libpart-x.so", RTLD_NOW);
    printf("opened another %d\n", ((function)must_find(other, "value_x"))());
}
static void closes_another(void) { printf("closed another %d\n", dlclose(other)); }
static void *thread(void *unused) {
    (void)unused;
    opens_another();
    return unused;
}
static void starts_a_thread(void) {
    pthread_t made;
    pthread_create(&made, NULL, thread, NULL);
    pthread_join(made, NULL);
    closes_another();
}

int main(int count, char **arguments) {
    static const struct { const char *name; void (*act)(void); } acts[] = {
        {"looks", looks_up}, {"opens", opens_and_closes}, {"keeps", keeps}, {"itself", closes_itself},
        {"another", opens_another}, {"closes", closes_another}, {"thread", starts_a_thread},
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count < 2) return 2;
    if (!strcmp(arguments[1], "closes")) other = must_open("./finalisers/libpart-x.so", RTLD_NOW);
    own = must_open(FILE_NAME, RTLD_NOW);
    call(own);
    void (**at_end)(void) = must_find(own, "at_end");
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (!strcmp(arguments[1], acts[i].name)) *at_end = acts[i].act;
    if (!*at_end) return 2;
    printf("closed %d\n", dlclose(own));
    printf("mapped %d, another %d\n", mapped("libfinaliser.so"), mapped("libpart-x.so"));
    if (kept) {
        // It was opened anew: what the first life left in its variables is still there, and its destructor does not run again.
        printf("still %d", call(kept));
        printf(", closed %d", dlclose(kept));
        printf(", mapped %d\n", mapped("libfinaliser.so"));
    }
    own = must_open(FILE_NAME, RTLD_NOW);
    printf("anew %d\n", call(own));
    return 0;
}
