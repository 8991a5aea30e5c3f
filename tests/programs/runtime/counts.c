// Opens and closes libraries that share a dependency; after each step it says which of them are mapped. base is needed by one and
// two, two needs one too.
#define _GNU_SOURCE
#include "../dlfcn/report.h"

static void state(const char *step) {
    printf("%s: base %d one %d two %d\n", step, mapped("libpart-base.so"), mapped("libpart-one.so"), mapped("libpart-two.so"));
}
static int value(void *handle, const char *name) { return ((int (*)(void))must_find(handle, name))(); }
static void *loaded(const char *file) { return dlopen(file, RTLD_NOW | RTLD_NOLOAD); }

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    void *two = must_open("./counts/libpart-two.so", RTLD_NOW);
    void *again = must_open("./counts/libpart-two.so", RTLD_NOW);
    void *base = must_open("./counts/libpart-base.so", RTLD_NOW);
    printf("one handle %d, values %d %d\n", two == again, value(two, "value_two"), value(base, "value_base"));
    // RTLD_NOLOAD counts too.
    void *one = loaded("./counts/libpart-one.so");
    printf("not loaded anew %d\n", one != NULL);
    dlclose(two);
    state("two closed once");
    printf("still %d\n", value(again, "value_two"));
    dlclose(again);
    state("two closed twice");
    printf("one %d\n", value(one, "value_one"));
    dlclose(base);
    state("base closed");
    dlclose(one);
    state("one closed");
    int refused = dlclose(one) != 0;
    printf("closed once too often %d, loaded %d\n", refused, loaded("./counts/libpart-base.so") != NULL);
    // A failed load takes back what it had loaded, and no more.
    one = must_open("./counts/libpart-one.so", RTLD_NOW);
    printf("failed %d\n", dlopen("./counts/libpart-broken.so", RTLD_NOW) == NULL);
    state("after a failure");
    dlclose(one);
    state("end");
    return 0;
}
