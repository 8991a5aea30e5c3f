// What keeps a library that is closed: a slot that was bound to it at the first call, at load or by its address; a weak definition; a
// unique one; a name found by RTLD_DEFAULT. Each as long as its user stays.
#include "../dlfcn/report.h"

typedef int (*function)();
static int call(void *handle, const char *name) { return reinterpret_cast<function>(must_find(handle, name))(); }

static void one(const char *title, const char *giver, const char *user, int mode, const char *name) {
    char file[64], taker[64];
    snprintf(file, sizeof file, "./held/%s", giver);
    snprintf(taker, sizeof taker, "./held/%s", user);
    void *given = must_open(file, RTLD_NOW | RTLD_GLOBAL);
    void *taking = must_open(taker, mode);
    int before = call(taking, name);
    dlclose(given);
    int stays = mapped(giver);
    // A library in the place of the one that was closed, if it was unmapped.
    void *other = must_open("./held/libother.so", RTLD_NOW);
    int after = call(taking, name);
    dlclose(taking);
    printf("%s: %d, closed: mapped %d, %d, user closed: mapped %d\n", title, before, stays, after, mapped(giver));
    dlclose(other);
}

int main() {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    one("a function", "libgiver1.so", "libuser.so", RTLD_LAZY, "calls_strong");
    one("a weak function", "libgiver2.so", "libuser.so", RTLD_LAZY, "calls_weak");
    one("at load", "libgiver3.so", "libbound.so", RTLD_NOW, "calls_strong");
    one("a name by RTLD_DEFAULT", "libgiver4.so", "libuser.so", RTLD_LAZY, "finds");
    // Whoever was bound to a unique object must find it in one place for ever.
    void *first = must_open("./held/libunique1.so", RTLD_NOW);
    printf("unique %d", call(first, "next_member"));
    void *second = must_open("./held/libunique2.so", RTLD_NOW);
    dlclose(first);
    printf(" %d, mapped %d", call(second, "next_member"), mapped("libunique1.so"));
    dlclose(second);
    first = must_open("./held/libunique1.so", RTLD_NOW);
    printf(", again %d\n", call(first, "next_member"));
}
