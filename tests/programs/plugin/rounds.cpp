// Opens, uses and closes the plug-in again and again, in main and in a thread that stays and one that is new in each round.
// After rounds 50, 100 and the last it counts mappings, descriptors, the objects listed, the TLS module's number and resident memory.
#include "../dlfcn/report.h"
#include "plugin.hpp"
#include <link.h>
#include <pthread.h>
#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

static pthread_barrier_t barrier;
static Plugin *plugin;
static int wrong;
static void use() {
    // 5 + 4 + 2 + 5 + 1 + 1, then counter and array have grown by one each, the argument by one.
    wrong += plugin->use(2) != 18;
    wrong += plugin->use(3) != 22;
}
static void *stays(void *rounds) {
    for (long i = 0; i < reinterpret_cast<long>(rounds); i++) {
        pthread_barrier_wait(&barrier);
        use();
        pthread_barrier_wait(&barrier);
    }
    return nullptr;
}
static void *once(void *) {
    use();
    return nullptr;
}
static long lines(const char *path) {
    FILE *file = fopen(path, "r");
    long count = 0;
    for (int c; (c = getc(file)) != EOF;) count += c == '\n';
    fclose(file);
    return count;
}
static long entries(const char *path) {
    DIR *directory = opendir(path);
    long count = 0;
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}
static long resident() {
    long kilobytes = 0;
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (fgets(line, sizeof line, file)) sscanf(line, "Rss: %ld", &kilobytes);
    fclose(file);
    return kilobytes;
}
static int count_objects(struct dl_phdr_info *, size_t, void *count) {
    ++*static_cast<long *>(count);
    return 0;
}
int main(int count, char **arguments) {
    if (count < 3) return 2;
    const long rounds = atol(arguments[2]);
    pthread_barrier_init(&barrier, nullptr, 2);
    pthread_t thread;
    pthread_create(&thread, nullptr, stays, reinterpret_cast<void *>(rounds));
    for (long round = 1; round <= rounds; round++) {
        void *handle = must_open(arguments[1], round % 2 ? RTLD_NOW : RTLD_LAZY);
        size_t module = 0;
        dlinfo(handle, RTLD_DI_TLS_MODID, &module);
        plugin = reinterpret_cast<Plugin *(*)()>(must_find(handle, "make"))();
        use();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        pthread_t fresh;
        pthread_create(&fresh, nullptr, once, nullptr);
        pthread_join(fresh, nullptr);
        delete plugin;
        dlclose(handle);
        // The first count touches what counting needs, and is not compared.
        if (round == 50 || round == 100 || round == rounds) {
            long objects = 0;
            dl_iterate_phdr(count_objects, &objects);
            malloc_trim(0);
            printf("%ld %ld %ld %zu %ld\n", lines("/proc/self/maps"), entries("/proc/self/fd"), objects, module, resident());
        }
    }
    pthread_join(thread, nullptr);
    printf("wrong %d\n", wrong);
}
