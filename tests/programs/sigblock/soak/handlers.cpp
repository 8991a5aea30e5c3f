// handlers SECONDS DIRECTORY [SLOWER]: two threads that bind symbols, iterate, throw and catch, and open and close plug-ins of
// their own in DIRECTORY, under two timers, one of the process and one of the second thread, whose handler binds, iterates, throws and
// catches as well; periods are so many times as long on a processor that is so much slower. Every value is checked. Prints
// counts as one line of KEY=VALUE. Neither malloc nor stdio in the handler.
#include "watchdog.h"
#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace {
constexpr unsigned SYMBOLS = 20000, MARGIN = 64;
constexpr int THREADS = 2, STANDSTILL = 20;
constexpr long PROCESS_PERIOD = 250000, THREAD_PERIOD = 300000; // nanoseconds

// What one kind of code did.
struct done { volatile uint64_t bound, caught, unwound, iterations; };

// One thread. The counters lie in memory that the watchdog sees.
struct line {
    int index;
    volatile pid_t tid;
    void *library;
    // The library whose symbols are bound: the handler takes numbers from below, the main line from above. Null while it is
    // being replaced.
    std::atomic<int (*)(unsigned)> call;
    std::atomic<unsigned> low, high;
    volatile uint64_t started, completed, cycles, libraries, round;
    // What came out otherwise than it must.
    volatile uint64_t wrong_bound, wrong_caught, wrong_objects, wrong_plug;
    done handler, main;
};

line *lines;
int base_objects;
const char *directory;
volatile int quit;
thread_local line *self;

struct fault { uint64_t value; };
struct counted {
    done &d;
    ~counted() { bump(&d.unwound); }
};

__attribute__((noinline)) uint64_t descend(done &d, int depth, uint64_t value) {
    counted level{d};
    if (depth == 0) throw fault{value};
    return descend(d, depth - 1, value) + 1;
}

void throw_and_catch(line *l, done &d, int depth, uint64_t value) {
    uint64_t before = d.unwound;
    try {
        descend(d, depth, value);
        bump(&l->wrong_caught);
    } catch (const fault &f) {
        if (f.value != value || d.unwound < before + static_cast<uint64_t>(depth) + 1) bump(&l->wrong_caught);
    }
    bump(&d.caught);
}

int count_object(dl_phdr_info *info, size_t, void *counter) {
    if (!info->dlpi_phnum || !info->dlpi_phdr || !info->dlpi_name) return 1;
    ++*static_cast<int *>(counter);
    return 0;
}

// The number of objects; -1 if one of them is not whole.
int count_objects() {
    int counter = 0;
    return dl_iterate_phdr(count_object, &counter) ? -1 : counter;
}

void iterate(line *l, done &d) {
    if (count_objects() < base_objects) bump(&l->wrong_objects);
    bump(&d.iterations);
}

void bind(line *l, done &d, unsigned number) {
    if (l->call.load()(number) != static_cast<int>(7 * number + 3)) bump(&l->wrong_bound);
    bump(&d.bound);
}

void on_timer(int, siginfo_t *, void *) {
    line *l = self;
    int error = errno;
    bump(&l->started);
    uint64_t value = l->started;
    iterate(l, l->handler);
    if (l->call.load() && l->low + MARGIN < l->high) bind(l, l->handler, l->low.fetch_add(1));
    throw_and_catch(l, l->handler, 3, value);
    bump(&l->completed);
    errno = error;
}

[[noreturn]] void give_up(const char *what) {
    const char *error = dlerror();
    fprintf(stderr, "%s: %s\n", what, error ? error : "?");
    _exit(2);
}

void *open_own(const line *l, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/lib%s-%d.so", directory, name, l->index);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) give_up(path);
    return handle;
}

// A library with all its symbols unbound in place of one that is used up.
void renew(line *l) {
    l->call = nullptr;
    if (l->library && dlclose(l->library)) give_up("dlclose");
    l->library = open_own(l, "callers");
    auto call = reinterpret_cast<int (*)(unsigned)>(dlsym(l->library, "call_many"));
    if (!call) give_up("call_many");
    l->low = 0;
    l->high = SYMBOLS;
    l->call = call;
    bump(&l->libraries);
}

void cycle(line *l) {
    void *handle = open_own(l, "plug");
    auto plug = reinterpret_cast<int (*)(int)>(dlsym(handle, "plug"));
    if (!plug) give_up("plug");
    int n = static_cast<int>(l->cycles % 1000);
    // The constructor ran, and the thread-local counter begins anew each time.
    if (plug(n) != 2 * n + 1 + (7 + 3) + (70 + 3) + (7000 + 3)) bump(&l->wrong_plug);
    if (dlclose(handle)) give_up("dlclose");
    bump(&l->cycles);
}

void *run(void *argument) {
    line *l = self = static_cast<line *>(argument);
    // What the C++ library sets up at a thread's first exception comes before the first signal.
    throw_and_catch(l, l->main, 1, 1);
    renew(l);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    l->tid = static_cast<pid_t>(syscall(SYS_gettid));
    while (!quit) {
        cycle(l);
        for (int i = 0; i < 20; i++) {
            iterate(l, l->main);
            throw_and_catch(l, l->main, 5, l->main.caught);
            for (int k = 0; k < 4 && l->low + MARGIN < l->high; k++) bind(l, l->main, --l->high);
        }
        if (l->low + MARGIN >= l->high) renew(l);
        bump(&l->round);
    }
    // The C++ library gives up what it has for the thread's exceptions when the thread ends, inside malloc's lock: no handler
    // may throw then.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    return nullptr;
}

void start_timer(pid_t thread, int number, long period) {
    struct sigaction action = {};
    action.sa_sigaction = on_timer;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigevent event = {};
    event.sigev_notify = thread ? SIGEV_THREAD_ID : SIGEV_SIGNAL;
    event.sigev_signo = number;
    event.sigev_notify_thread_id = thread;
    itimerspec every = {{0, period}, {0, period}};
    timer_t timer;
    if (sigaction(number, &action, nullptr) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
        timer_settime(timer, 0, &every, nullptr))
        perror("timer"), _exit(2);
}

void print_counts(double seconds) {
    uint64_t started = 0, completed = 0, cycles = 0, libraries = 0, bound = 0, caught = 0, objects = 0, plug = 0;
    done handler = {}, main = {};
    auto add = [](done &sum, const done &one) {
        sum.bound = sum.bound + one.bound, sum.caught = sum.caught + one.caught;
        sum.iterations = sum.iterations + one.iterations;
    };
    uint64_t least = UINT64_MAX;
    for (int t = 0; t < THREADS; t++) {
        started += lines[t].started, completed += lines[t].completed, cycles += lines[t].cycles;
        libraries += lines[t].libraries, bound += lines[t].wrong_bound, caught += lines[t].wrong_caught;
        objects += lines[t].wrong_objects, plug += lines[t].wrong_plug;
        if (lines[t].completed < least) least = lines[t].completed;
        add(handler, lines[t].handler), add(main, lines[t].main);
    }
    struct sigblock_counts counts = {0, 0};
    if (sigblock_counts) sigblock_counts(&counts);
    printf("backend=%s milliseconds=%.0f runs=%lu unfinished=%lu least_runs=%lu held=%lu cycles=%lu libraries=%lu handler_bound=%lu "
           "main_bound=%lu handler_caught=%lu main_caught=%lu handler_iterations=%lu main_iterations=%lu wrong_bound=%lu wrong_caught=%lu "
           "wrong_objects=%lu wrong_plug=%lu\n",
           sigblock_backend ? sigblock_backend() : "none", seconds * 1e3, completed, started - completed, least, counts.held,
           cycles, libraries, handler.bound, main.bound, handler.caught, main.caught, handler.iterations, main.iterations,
           bound, caught, objects, plug);
}
} // namespace

int main(int argc, char **argv) {
    if (argc < 3) return fputs("usage: handlers SECONDS DIRECTORY [SLOWER]\n", stderr), 2;
    long slower = argc > 3 ? atol(argv[3]) : 1;
    double seconds = atof(argv[1]);
    directory = argv[2];
    void *memory = mmap(nullptr, sizeof(line) * THREADS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return perror("mmap"), 2;
    lines = static_cast<line *>(memory);
    const volatile uint64_t *watched[2 * THREADS];
    for (int t = 0; t < THREADS; t++) {
        lines[t].index = t;
        watched[2 * t] = &lines[t].round;
        watched[2 * t + 1] = &lines[t].completed;
    }
    base_objects = count_objects();
    pid_t watchdog = start_watchdog(watched, 2 * THREADS, slower > 1 ? 10 * STANDSTILL : STANDSTILL);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t], nullptr, run, &lines[t])) return perror("pthread_create"), 2;
    for (int t = 0; t < THREADS; t++)
        while (!lines[t].tid) nap(1e-3);
    double start = now();
    start_timer(0, SIGRTMIN + 3, PROCESS_PERIOD * slower);
    start_timer(lines[1].tid, SIGRTMIN + 4, THREAD_PERIOD * slower);
    nap(seconds);
    quit = 1;
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], nullptr);
    print_counts(now() - start);
    kill(watchdog, SIGKILL);
    fflush(stdout);
    _exit(0);
}
