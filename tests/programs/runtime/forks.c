// forks WAY MOMENT COUNT: copies the process COUNT times while other threads are at a MOMENT: `open` (they load and unload),
// `bind` (they go through lazy slots of what they have just loaded), `callback` (they are in callbacks of dl_iterate_phdr),
// `heap` (they make the loader allocate and free), `threads` (threads come and go), `handler` (a timer's handler forks, while
// its thread and others load), or all of it. Prints how many children were right, and what went wrong with the others.
#include "forks.h"
#include <pty.h>
#include <sys/time.h>

static int stop;
static unsigned long done[8];

static void use(const char *path, int mode) {
    void *handle = must_open(path, mode);
    int (*value)(void) = (int (*)(void))must_find(handle, "busy_value");
    if (value() < 40) abort();
    dlclose(handle);
}

static const char *const busy[] = {"./libbusy1.so", "./libbusy2.so", "./libbusy3.so", "./libbusy4.so"};

static void *opens(void *number) {
    for (unsigned round = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); round++, done[(long)number]++)
        use(busy[((long)number + round) % 4], RTLD_NOW | (round & 1 ? RTLD_GLOBAL : RTLD_LOCAL));
    return NULL;
}
static void *binds(void *number) {
    for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); done[(long)number]++) use(busy[(long)number % 4], RTLD_LAZY);
    return NULL;
}
static int dwell(struct dl_phdr_info *info, size_t size, void *data) {
    // Others need moments in which nobody is in a callback, to give memory back.
    for (volatile int i = 0; i < 300; i++) continue;
    return !(info && size && data);
}
static void *iterates(void *number) {
    for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); done[(long)number]++) {
        dl_iterate_phdr(dwell, &stop);
        usleep(50);
    }
    return NULL;
}
// Each error's text is allocated and the one before it freed.
static void *allocates(void *number) {
    char name[200];
    memset(name, 'n', sizeof name);
    for (unsigned round = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); round++, done[(long)number]++) {
        name[round % 199] = 0;
        if (dlsym(RTLD_DEFAULT, name) || !dlerror()) abort();
        name[round % 199] = 'n';
    }
    return NULL;
}
static void *ends(void *value) { return value; }
static void *starts(void *number) {
    for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); done[(long)number]++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, ends, NULL)) abort();
        pthread_join(thread, NULL);
    }
    return NULL;
}

static const struct { const char *name; void *(*work)(void *); } moments[] = {
    {"open", opens}, {"bind", binds}, {"callback", iterates}, {"heap", allocates}, {"threads", starts}};
// Forks that the C library makes itself.
static pid_t pty(void) {
    int master;
    pid_t child = forkpty(&master, NULL, NULL, NULL);
    if (child > 0) terminal = master;
    return child;
}
static const struct { const char *name; Way way; } ways[] = {
    {"fork", fork}, {"_Fork", _Fork}, {"clone", raw_clone}, {"syscall", raw_fork}, {"forkpty", pty}};

static Way way;
static int objects, wanted, statuses[2000];
static volatile int begun, made;

// In the handler the child does nothing that needs what its own thread was in the middle of, but is otherwise the same.
static void forks_here(int number) {
    // Of any thread.
    int child = __atomic_fetch_add(&begun, 1, __ATOMIC_SEQ_CST);
    if (child >= wanted) return;
    statuses[child] = one_child(way, "./libchild.so", objects, 20);
    __atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST);
    (void)number;
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count < 4) return 2;
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(ways[i].name, arguments[1])) way = ways[i].way;
    wanted = atoi(arguments[3]);
    const char *moment = arguments[2];
    int all = !strcmp(moment, "all"), handler = !strcmp(moment, "handler");
    dl_iterate_phdr(count_object, &objects);
    pthread_t threads[10];
    int started = 0;
    for (unsigned i = 0; i < sizeof moments / sizeof *moments; i++)
        for (int twice = 0; twice < 2; twice++)
            if (all || !strcmp(moments[i].name, moment) || (handler && i == 0))
                if (pthread_create(&threads[started++], NULL, moments[i].work, (void *)(long)(i + 1))) return 3;
    if (!way || !started || wanted > 2000) return 4;
    if (handler) {
        nested = 1;
        struct sigaction action = {.sa_handler = forks_here, .sa_flags = SA_RESTART};
        sigaction(SIGALRM, &action, NULL);
        struct itimerval often = {{0, 3000}, {0, 3000}};
        setitimer(ITIMER_REAL, &often, NULL);
        while (made < wanted) use("./libbusy1.so", RTLD_LAZY);
        setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    } else {
        while (made < wanted) {
            // At another point of what the others do each time.
            for (volatile int i = 0; i < made % 97 * 100; i++) continue;
            statuses[made++] = one_child(way, "./libchild.so", objects, 20);
        }
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    int right = 0;
    for (int i = 0; i < wanted; i++) {
        right += statuses[i] == RIGHT;
        if (statuses[i] != RIGHT) printf("child %d: %d\n", i, statuses[i]);
    }
    printf("%s %s %d of %d\n", arguments[1], moment, right, wanted);
    return 0;
}
