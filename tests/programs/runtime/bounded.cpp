// ROUNDS rounds of opening, using and closing, shared by four threads with a plug-in each and one in common, while what the arguments
// name goes on: `iterating`: four threads call dl_iterate_phdr without pause, so that at any moment one of them is inside a callback;
// `sleeping`: one callback lasts as long as the rounds. After the first hundred rounds and after the last one it counts mappings,
// descriptors, objects, the TLS module that the next library gets and resident memory.
#include "../dlfcn/report.h"
#include <atomic>
#include <dirent.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <vector>

static const int THREADS = 4;
static long rounds;
static std::atomic<long> wrong{0}, iterations{0};
static std::atomic<bool> done{false}, inside{false};
static pthread_barrier_t barrier;

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
static long open_and_close(const char *file, long number, bool alone) {
    void *handle = must_open(file, number % 2 ? RTLD_NOW : RTLD_LAZY);
    size_t module = 0;
    dlinfo(handle, RTLD_DI_TLS_MODID, &module);
    int result = reinterpret_cast<int (*)(int)>(must_find(handle, "use"))(3);
    // What another thread keeps open is not fresh.
    wrong += alone ? result != 8 : result < 0;
    dlclose(handle);
    return static_cast<long>(module);
}
// While the other threads wait, but for those that iterate. One more round first takes back what the last ones could not. Objects are
// counted by the list of link maps: a callback may be sleeping.
static void count() {
    long module = open_and_close("./bounded/libbounded0.so", 1, true), objects = 0;
    void *program = dlopen(nullptr, RTLD_NOW);
    for (link_map *map = static_cast<link_map *>(program); map; map = map->l_next) objects++;
    malloc_trim(0);
    printf("%ld %ld %ld %ld %ld\n", lines("/proc/self/maps"), entries("/proc/self/fd"), objects, module, resident());
}
static void works(int number) {
    char file[64];
    snprintf(file, sizeof file, "./bounded/libbounded%d.so", number);
    for (long round = 1; round <= rounds / THREADS; round++) {
        open_and_close(file, round, true);
        if (round % 8 == 0) open_and_close("./bounded/libbounded4.so", round, false);
        if (round == 10 || round == 25 || round == rounds / THREADS) {
            pthread_barrier_wait(&barrier);
            // What the first count touches for counting is not compared; the others go on after it.
            if (number == 0) count();
            pthread_barrier_wait(&barrier);
        }
    }
}
static int nothing(struct dl_phdr_info *, size_t, void *) { return 0; }
static void iterates() {
    while (!done) {
        dl_iterate_phdr(nothing, nullptr);
        iterations++;
    }
}
static int sleeps(struct dl_phdr_info *, size_t, void *) {
    inside = true;
    while (!done) usleep(1000);
    return 1;
}
int main(int count, char **arguments) {
    if (count < 2) return 2;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    rounds = atol(arguments[1]);
    pthread_barrier_init(&barrier, nullptr, THREADS);
    std::vector<std::thread> threads, beside;
    for (int i = 2; i < count; i++) {
        if (!strcmp(arguments[i], "iterating"))
            for (int j = 0; j < 4; j++) beside.emplace_back(iterates);
        if (!strcmp(arguments[i], "sleeping")) beside.emplace_back([] { dl_iterate_phdr(sleeps, nullptr); });
    }
    while (!beside.empty() && !inside && !iterations) usleep(1000);
    for (int i = 0; i < THREADS; i++) threads.emplace_back(works, i);
    for (auto &thread : threads) thread.join();
    done = true;
    for (auto &thread : beside) thread.join();
    printf("wrong %ld\n", wrong.load());
}
