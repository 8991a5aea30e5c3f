// Callbacks of dl_iterate_phdr that leave by an exception, that open and close libraries, and that call it again: afterwards
// other threads get through.
#include "report.h"
#include <link.h>
#include <pthread.h>

static const char *wanted;
static int throws(struct dl_phdr_info *info, size_t, void *) {
    if (!strcmp(base(info->dlpi_name), wanted)) throw 7;
    return 0;
}
static int count(struct dl_phdr_info *, size_t, void *number) {
    ++*static_cast<int *>(number);
    return 0;
}
static int opens(struct dl_phdr_info *info, size_t, void *number) {
    void *handle = must_open("./information/lib52.so", RTLD_NOW);
    int objects = 0;
    dl_iterate_phdr(count, &objects);
    dlclose(handle);
    ++*static_cast<int *>(number);
    return info->dlpi_phdr == nullptr;
}
static void *other(void *) {
    int objects = 0;
    dl_iterate_phdr(count, &objects);
    void *handle = must_open("./information/lib52.so", RTLD_NOW);
    dlclose(handle);
    return reinterpret_cast<void *>(objects > 0 ? 1L : 0L);
}
static int from_another_thread() {
    pthread_t thread;
    void *result = nullptr;
    pthread_create(&thread, nullptr, other, nullptr);
    pthread_join(thread, &result);
    return result != nullptr;
}

int main() {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    int before = 0;
    dl_iterate_phdr(count, &before);
    for (int round = 0; round < 3; round++) {
        void *handle = must_open("./information/lib51.so", RTLD_NOW);
        wanted = "lib51.so";
        int caught = 0;
        try {
            dl_iterate_phdr(throws, nullptr);
        } catch (int number) {
            caught = number;
        }
        printf("caught %d, another thread %d\n", caught, from_another_thread());
        dlclose(handle);
    }
    int visited = 0;
    printf("opening callback %d", dl_iterate_phdr(opens, &visited));
    printf(" visited all %d, mapped %d\n", visited >= before, mapped("lib52.so"));
}
