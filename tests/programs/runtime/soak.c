// soak SECONDS FORKS: eight threads open, close, bind, look up, iterate, throw and start threads, under a 10 kHz timer whose
// handler iterates and binds, while the process is copied FORKS times. Each child iterates, binds and opens. What is held after the
// first second and at the end is compared. Prints KEY=VALUE.
#include "forks.h"
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <time.h>

enum { THREADS = 8, BUSY = 4 };
extern int bound_30(int), bound_31(int);
int soak_catch(void (*throws)(int), int value);

static int stop, park, parked, opening, wrong, objects;
static unsigned long handled, rounds[THREADS];

static void report(const char *what, int value) {
    __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    dprintf(1, "wrong: %s %d\n", what, value);
}

// Slots of this program that are made unbound again, so that each call binds.
static struct { unsigned long *place, unbound; } slots[2];
static void find_slots(void) {
    const ElfW(Dyn) *dynamic = _DYNAMIC;
    const ElfW(Rela) *relocations = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    unsigned long size = 0, bias = 0;
    for (; dynamic->d_tag; dynamic++) {
        if (dynamic->d_tag == DT_JMPREL) relocations = (void *)dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_PLTRELSZ) size = dynamic->d_un.d_val;
        if (dynamic->d_tag == DT_SYMTAB) symbols = (void *)dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_STRTAB) strings = (void *)dynamic->d_un.d_ptr;
    }
    struct link_map *map = dlopen(NULL, RTLD_NOW);
    bias = map->l_addr;
    for (unsigned long i = 0; i < size / sizeof *relocations; i++) {
        const char *name = strings + symbols[ELF64_R_SYM(relocations[i].r_info)].st_name;
        int which = !strcmp(name, "bound_30") ? 0 : !strcmp(name, "bound_31") ? 1 : -1;
        if (which < 0) continue;
        slots[which].place = (unsigned long *)(bias + relocations[i].r_offset);
        slots[which].unbound = *slots[which].place;
    }
    if (!slots[0].place || !slots[1].place) report("slots not found", 0);
}
static void unbind(int which) { __atomic_store_n(slots[which].place, slots[which].unbound, __ATOMIC_RELAXED); }

static void handler(int number) {
    int seen = 0, error = errno;
    dl_iterate_phdr(count_object, &seen);
    if (seen < objects) report("objects in a handler", seen);
    unbind(0);
    if (bound_30(number) != number + 30) report("bound in a handler", number);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
    errno = error;
}

static void *opened(const char *path, int mode) {
    __atomic_fetch_add(&opening, 1, __ATOMIC_SEQ_CST);
    void *handle = dlopen(path, mode);
    __atomic_fetch_sub(&opening, 1, __ATOMIC_SEQ_CST);
    if (!handle) dprintf(1, "dlopen: %s\n", dlerror()), report(path, 0);
    return handle;
}
static void *in_thread(void *calls) { return (void *)(long)((int (*)(void))calls)(); }

static void round_of(int thread, unsigned long round) {
    static const char *const busy[BUSY] = {"./libbusy1.so", "./libbusy2.so", "./libbusy3.so", "./libbusy4.so"};
    const char *path = busy[(thread + round) % BUSY];
    switch ((thread + round) % 6) {
    case 0:
    case 1: {
        void *handle = opened(path, round & 1 ? RTLD_LAZY : RTLD_NOW);
        if (!handle) break;
        int (*value)(void) = (int (*)(void))dlsym(handle, "busy_value");
        int got = value ? value() : -2;
        // Its thread-local count goes on as long as another thread keeps it open.
        if (got < 43 + 3) report("busy_value", got);
        if (dlclose(handle)) report("dlclose", 0);
        break;
    }
    case 2: {
        int seen = 0;
        dl_iterate_phdr(count_object, &seen);
        if (seen < objects) report("objects", seen);
        break;
    }
    case 3: {
        Dl_info found;
        unbind(1);
        if (bound_31(thread) != thread + 31) report("bound", thread);
        if (!dladdr(&stop, &found) || dlsym(RTLD_DEFAULT, "nosuch") || !dlerror()) report("lookups", thread);
        break;
    }
    case 4: {
        void *handle = opened("./libsoak.so", RTLD_LAZY);
        if (!handle) break;
        int got = soak_catch((void (*)(int))dlsym(handle, "soak_throws"), thread);
        if (got != thread * 10 + 6) report("caught", got);
        if (dlclose(handle)) report("dlclose", 1);
        break;
    }
    default: {
        void *handle = opened("./libsoak.so", RTLD_NOW), *first = NULL;
        if (!handle) break;
        pthread_t other;
        if (pthread_create(&other, NULL, in_thread, dlsym(handle, "soak_calls"))) report("pthread_create", thread);
        else pthread_join(other, &first);
        if ((long)first != 1) report("calls", (int)(long)first);
        if (dlclose(handle)) report("dlclose", 2);
    }
    }
}

static void *load(void *number) {
    int thread = (int)(long)number;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        if (__atomic_load_n(&park, __ATOMIC_SEQ_CST)) {
            __atomic_fetch_add(&parked, 1, __ATOMIC_SEQ_CST);
            while (__atomic_load_n(&park, __ATOMIC_SEQ_CST)) usleep(1000);
            __atomic_fetch_sub(&parked, 1, __ATOMIC_SEQ_CST);
        }
        round_of(thread, rounds[thread]++);
    }
    return NULL;
}

struct held { long mappings, descriptors, module, resident; };

static long lines_of(const char *path) {
    char buffer[65536];
    long lines = 0, got;
    int file = open(path, O_RDONLY);
    while ((got = read(file, buffer, sizeof buffer)) > 0)
        for (long i = 0; i < got; i++) lines += buffer[i] == '\n';
    close(file);
    return lines;
}

// With all other threads parked.
static struct held measure(void) {
    __atomic_store_n(&park, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&parked, __ATOMIC_SEQ_CST) < THREADS) usleep(1000);
    struct held held = {0};
    // Gives back what the last ones to close could not, and says which thread-local module is free.
    for (int i = 0; i < 3; i++) {
        void *handle = opened("./libchild.so", RTLD_NOW);
        size_t module = 0;
        if (dlinfo(handle, RTLD_DI_TLS_MODID, &module)) report("dlinfo", 0);
        held.module = (long)module;
        dlclose(handle);
    }
    malloc_trim(0);
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory)) held.descriptors++;
    closedir(directory);
    held.mappings = lines_of("/proc/self/maps");
    // What statm says is late by some pages a processor.
    char text[1000] = "";
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    const char *resident = read(file, text, sizeof text - 1) > 0 ? strstr(text, "Rss:") : NULL;
    if (!resident || sscanf(resident, "Rss: %ld", &held.resident) != 1) report("smaps_rollup", 0);
    close(file);
    return held;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
static void wait_until(double moment) {
    for (double left; (left = moment - now()) > 0;) usleep(left < 0.01 ? left * 1e6 : 10000);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    double seconds = atof(arguments[1]), start = now();
    int forks = atoi(arguments[2]), made = 0, in_open = 0, hung = 0, lost = 0;
    Way ways[] = {fork, _Fork, raw_clone, raw_fork};
    mallopt(M_ARENA_MAX, 1);
#ifdef __SANITIZE_THREAD__
    go_past_sanitizer();
#endif
    dl_iterate_phdr(count_object, &objects);
    find_slots();
    signal(SIGRTMIN, handler);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    struct itimerspec often = {{0, 100000}, {0, 100000}}, never = {{0, 0}, {0, 0}};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL)) return 3;
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, load, (void *)i)) return 4;
    // What is needed once: the pages of code that forks and measuring touch.
    for (unsigned i = 0; forks && i < sizeof ways / sizeof *ways; i++)
        if (one_child(ways[i], "./libchild.so", objects, 60) != RIGHT) report("a first child", (int)i);
    measure();
    __atomic_store_n(&park, 0, __ATOMIC_SEQ_CST);
    wait_until(start + 1);
    timer_settime(timer, 0, &never, NULL);
    struct held before = measure();
    timer_settime(timer, 0, &often, NULL);
    __atomic_store_n(&park, 0, __ATOMIC_SEQ_CST);
    for (; made < forks; made++) {
        wait_until(start + 1 + (seconds - 2) * made / forks);
        // At a moment when another thread is inside dlopen, if there is one soon.
        for (int i = 0; i < 100000 && !__atomic_load_n(&opening, __ATOMIC_SEQ_CST); i++) __builtin_ia32_pause();
        in_open += __atomic_load_n(&opening, __ATOMIC_SEQ_CST) > 0;
        int status = one_child(ways[made % (sizeof ways / sizeof *ways)], "./libchild.so", objects, 60);
        if (status == RIGHT) continue;
        hung += status == HUNG;
        lost += status < 0 || (status > 1000 && status != HUNG);
        if (status >= 0 && status < 1000) report("a child", status);
        else dprintf(1, "child %d of way %d: %d\n", made, (int)(made % (sizeof ways / sizeof *ways)), status);
    }
    wait_until(start + seconds);
    timer_settime(timer, 0, &never, NULL);
    struct held after = measure();
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&park, 0, __ATOMIC_SEQ_CST);
    unsigned long all = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        all += rounds[i];
    }
    long grown = after.resident - before.resident;
    printf("handled=%lu rounds=%lu forks=%d in_open=%d hung=%d lost=%d wrong=%d mappings=%ld mappings_more=%ld descriptors_more=%ld "
           "modules_more=%ld resident=%ld resident_more=%ld resident_per_mille=%ld\n",
           handled, all, made, in_open, hung, lost, wrong, after.mappings, after.mappings - before.mappings,
           after.descriptors - before.descriptors, after.module - before.module, after.resident, grown,
           grown <= 0 ? 0 : grown * 1000 / before.resident);
    return 0;
}
