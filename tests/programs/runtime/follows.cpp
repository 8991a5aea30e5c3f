// After each opening and closing everything that tells about objects agrees: the list of link maps, r_debug, dl_iterate_phdr and its
// counts, dladdr, _dl_find_object, the global scope, the unwinder. The library is opened at unlike addresses.
#include "../dlfcn/report.h"
#include <initializer_list>
#include <link.h>
#include <sys/mman.h>

struct Seen {
    int listed, debugged, iterated, objects;
    unsigned long long adds, subs;
};
static const char *wanted = "libfollowed.so";
static int is(const char *name) { return !strcmp(base(name), wanted); }
static int look(struct dl_phdr_info *info, size_t, void *place) {
    Seen *seen = static_cast<Seen *>(place);
    seen->iterated += is(info->dlpi_name);
    seen->objects++;
    seen->adds = info->dlpi_adds;
    seen->subs = info->dlpi_subs;
    return 0;
}
// What debuggers read; a copy of `_r_debug` in the program may be stale.
static const r_debug *for_debuggers() {
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_DEBUG) return reinterpret_cast<const r_debug *>(entry->d_un.d_ptr);
    abort();
}
static Seen see() {
    Seen seen = {};
    const link_map *last = nullptr;
    const r_debug *debug = for_debuggers();
    for (const link_map *map = debug->r_map; map; map = map->l_next) {
        seen.listed += is(map->l_name);
        // The list holds in both directions.
        seen.debugged += map->l_prev == last && debug->r_state == r_debug::RT_CONSISTENT;
        last = map;
    }
    dl_iterate_phdr(look, &seen);
    return seen;
}
static int found(void *address) {
    dl_find_object object;
    return _dl_find_object(address, &object) == 0 && object.dlfo_link_map && is(object.dlfo_link_map->l_name);
}
// By the program's handle: RTLD_DEFAULT would keep the library for its caller.
static int in_global_scope() {
    static void *program = dlopen(nullptr, RTLD_NOW);
    return dlsym(program, "followed") != nullptr;
}
int main() {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    const Seen start = see();
    const unsigned long long adds = start.adds, subs = start.subs;
    for (int round = 0; round < 3; round++) {
        for (int mode : {RTLD_NOW, RTLD_LAZY | RTLD_GLOBAL}) {
            void *handle = must_open("./follows/libfollowed.so", mode);
            auto thrower = reinterpret_cast<void (*)(int)>(must_find(handle, "followed"));
            void *code = reinterpret_cast<void *>(thrower);
            int caught = 0;
            try {
                thrower(round);
            } catch (int number) {
                caught = number == round;
            }
            Seen seen = see();
            printf("open: listed %d %d, iterated %d, more %d, adds %llu subs %llu, dladdr %s, found %d, global %d, caught %d\n",
                   seen.listed, seen.debugged - seen.objects, seen.iterated, seen.objects - start.objects, seen.adds - adds,
                   seen.subs - subs, object_of(code), found(code), in_global_scope(), caught);
            dlclose(handle);
            seen = see();
            printf("closed: listed %d %d, iterated %d, more %d, adds %llu subs %llu, dladdr %s, found %d, global %d\n",
                   seen.listed, seen.debugged - seen.objects, seen.iterated, seen.objects - start.objects, seen.adds - adds,
                   seen.subs - subs, object_of(code), found(code), in_global_scope());
            // What lies where it was now is not the library's: next time it gets another place.
            mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }
    }
}
