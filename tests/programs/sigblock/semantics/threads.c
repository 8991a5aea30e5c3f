// Threads and sections: who waits for whom. A thread that waits for another's callback answers signals, what a dead
// thread held is not lost, a stack used again starts clean, and libc's own two signals are never held.
#define _GNU_SOURCE
#include "asleep.h"
#include <sched.h>
#include <semaphore.h>

static volatile int in_visit, answered, stop;
static pthread_t visitor;
static volatile pid_t visitor_task;
static int nothing(struct dl_phdr_info *object, size_t size, void *number) {
    (void)object;
    (void)size;
    ++*(int *)number;
    return 0;
}
static void *visits_too(void *unused) {
    int number = 0;
    (void)unused;
    visitor_task = (pid_t)syscall(SYS_gettid);
    while (!in_visit) sched_yield();
    dl_iterate_phdr(nothing, &number);
    return (void *)(long)number;
}
static void answers(int number) {
    (void)number;
    __atomic_add_fetch(&answered, 1, __ATOMIC_SEQ_CST);
}
// The thread is there before the callback: to start one there ends the section.
static void start_visitor(void) {
    if (pthread_create(&visitor, 0, visits_too, 0)) give_up("a thread");
    while (!visitor_task) sleep_milliseconds(1);
}
// Lets it visit, and waits until it can go no further, or has ended: a lock around callbacks is allowed, not needed.
static void let_it_visit(void) {
    char path[64], line[512];
    in_visit = 1;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", visitor_task);
    for (;;) {
        int file = open(path, O_RDONLY);
        if (file < 0) return;
        ssize_t got = read(file, line, sizeof line - 1);
        close(file);
        if (got <= 0) return;
        line[got] = 0;
        char *state = strrchr(line, ')');
        if (state && state[2] == 'S') return;
        sleep_milliseconds(1);
    }
}
static void stops_the_world(void *unused) {
    (void)unused;
    let_it_visit();
    // The thread may be gone if nothing kept it.
    if (pthread_kill(visitor, SIGPWR) == 0)
        for (int i = 0; !answered && i < 10000 && pthread_kill(visitor, 0) == 0; i++) sleep_milliseconds(1);
}
static void stop_the_world(void) {
    signal(SIGPWR, answers);
    start_visitor();
    in_callback(stops_the_world, 0);
    void *number = 0;
    pthread_join(visitor, &number);
    say("answered %d, its visit %s", (int)answered, (long)number > 3 ? "went on" : "did not");
}
static void changes_user(void *unused) {
    (void)unused;
    let_it_visit();
    say("setuid %d setgid %d, ", setuid(getuid()), setgid(getgid()));
}
static void set_user(void) {
    start_visitor();
    in_callback(changes_user, 0);
    void *number = 0;
    pthread_join(visitor, &number);
    say("visit %s", (long)number > 3 ? "went on" : "did not");
}
// The other way: a thread sleeps in its callback and is stopped by one outside.
static sem_t stopped;
static void stop_handler(int number) {
    sigset_t wait;
    (void)number;
    sem_post(&stopped);
    sigfillset(&wait);
    sigdelset(&wait, SIGXCPU);
    sigsuspend(&wait);
    answered++;
}
static void resume_handler(int number) { (void)number; }
static void sleeps_in_visit(void *unused) {
    sigset_t none;
    (void)unused;
    sigemptyset(&none);
    in_visit = 1;
    while (!stop) ppoll(0, 0, &(struct timespec){0, 5000000}, &none);
}
static void *sleeping_visitor(void *unused) {
    in_callback(sleeps_in_visit, 0);
    return unused;
}
static void stopped_in_callback(void) {
    pthread_t thread;
    sem_init(&stopped, 0, 0);
    signal(SIGPWR, stop_handler);
    signal(SIGXCPU, resume_handler);
    if (pthread_create(&thread, 0, sleeping_visitor, 0)) give_up("a thread");
    while (!in_visit) sleep_milliseconds(1);
    for (int i = 0; i < 3; i++) {
        pthread_kill(thread, SIGPWR);
        while (sem_wait(&stopped)) {}
        while (answered != i + 1) {
            pthread_kill(thread, SIGXCPU);
            sleep_milliseconds(1);
        }
    }
    stop = 1;
    pthread_join(thread, 0);
    say("stopped %d", (int)answered);
}
static void *spins_in_section(void *unused) {
    enter();
    in_visit = 1;
    while (!stop) {}
    leave();
    return unused;
}
static void set_user_over_section(void) {
    pthread_t thread;
    if (pthread_create(&thread, 0, spins_in_section, 0)) give_up("a thread");
    while (!in_visit) sleep_milliseconds(1);
    int user = setuid(getuid()), group = setegid(getegid());
    say("%d %d inside, ", user, group);
    stop = 1;
    pthread_join(thread, 0);
    say("depth %u", depth());
}
static void *sleeps_in_section(void *unused) {
    on(SIGUSR1, 0);
    enter();
    pthread_kill(pthread_self(), SIGUSR1);
    in_visit = 1;
    sleep_milliseconds(15000);
    return unused;
}
static void cancelled_in_section(void) {
    void *value;
    for (int round = 0; round < 3; round++) {
        pthread_t thread;
        in_visit = 0;
        if (pthread_create(&thread, 0, sleeps_in_section, 0)) give_up("a thread");
        while (!in_visit) sleep_milliseconds(1);
        pthread_cancel(thread);
        pthread_join(thread, &value);
        say("%d ", value == PTHREAD_CANCELED);
    }
    in_visit = 1;
    visits_too(0);
    say("depth %u", depth());
}

// A signal for the process, held by a thread that ends inside: another thread gets it.
static void *ends_inside(void *how) {
    sigset_t user1;
    sigemptyset(&user1);
    sigaddset(&user1, SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &user1, 0);
    enter();
    queue(SIGUSR1, 31);
    if (how) pthread_exit(0);
    return 0;
}
static void held_by_dead_thread(void *how) {
    sigset_t user1;
    pthread_t thread;
    sigemptyset(&user1);
    sigaddset(&user1, SIGUSR1);
    on(SIGUSR1, 0);
    sigprocmask(SIG_BLOCK, &user1, 0);
    if (pthread_create(&thread, 0, ends_inside, how) || pthread_join(thread, 0)) give_up("a thread");
    say("before %d, ", (int)runs);
    sigprocmask(SIG_UNBLOCK, &user1, 0);
    say("runs %d code %d value %d", (int)runs, seen[0].code, seen[0].value);
}
static void held_by_returned_thread(void) { held_by_dead_thread(0); }
static void held_by_exited_thread(void) { held_by_dead_thread("exit"); }

// Threads that end inside, deeper and deeper, one of them with something in the slot; each stack is used again.
static volatile int clean;
static void *tells_and_ends(void *round) {
    int before = runs;
    clean += depth() == 0 && (!sigblock_word || *sigblock_word() == 0);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, 0);
    pthread_kill(pthread_self(), SIGUSR2);
    clean += runs == before + 1;
    for (long i = 0; i < (long)round; i++) enter();
    if ((long)round == 3) pthread_kill(pthread_self(), SIGUSR1);
    return 0;
}
static void stacks_again(void) {
    signal(SIGUSR1, count_run);
    signal(SIGUSR2, count_run);
    for (long round = 0; round < 20; round++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, tells_and_ends, (void *)(round % 5)) || pthread_join(thread, 0)) give_up("a thread");
    }
    say("clean %d of 40", (int)clean);
}
// Stacks that the program owns, so that the very same memory is used.
static void own_stack_again(void) {
    static char memory[1 << 18] __attribute__((aligned(4096)));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, memory, sizeof memory);
    signal(SIGUSR1, count_run);
    signal(SIGUSR2, count_run);
    for (long round = 0; round < 20; round++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, tells_and_ends, (void *)(round % 5)) || pthread_join(thread, 0)) give_up("a thread");
    }
    say("clean %d of 40", (int)clean);
}

// One word a thread: another's section holds nothing of this one's.
static void *in_section_until_told(void *unused) {
    enter();
    pthread_kill(pthread_self(), SIGUSR2);
    in_visit = 1;
    while (!stop) sleep_milliseconds(1);
    leave();
    return unused;
}
static void words_are_apart(void) {
    pthread_t thread;
    signal(SIGUSR1, count_run);
    signal(SIGUSR2, answers);
    if (pthread_create(&thread, 0, in_section_until_told, 0)) give_up("a thread");
    while (!in_visit) sleep_milliseconds(1);
    pthread_kill(pthread_self(), SIGUSR1);
    say("own %d depth %u, other's %d", (int)runs, depth(), (int)answered);
    stop = 1;
    pthread_join(thread, 0);
    say(", in the end %d", (int)answered);
}
// A thread started in a section, by its starter's mask as under ld-linux.
static void *tells_mask(void *unused) {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, 0, &now);
    say("blocked HUP %d USR1 %d USR2 %d, depth %u", sigismember(&now, SIGHUP), sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2), depth());
    return unused;
}
static void starts_thread(void *unused) {
    pthread_t thread;
    (void)unused;
    kill(getpid(), SIGUSR1);
    if (pthread_create(&thread, 0, tells_mask, 0) || pthread_join(thread, 0)) give_up("a thread");
}
static void started_in_callback(void) {
    sigset_t hangup;
    on(SIGUSR1, 0);
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    sigprocmask(SIG_BLOCK, &hangup, 0);
    in_callback(starts_thread, 0);
    say(", runs %d", (int)runs);
}

// A timer that starts threads uses libc's signal 32 among its own threads; a section holds nothing of that.
static void timer_thread(union sigval value) { answers(value.sival_int); }
static void timer_that_starts_threads(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = timer_thread};
    struct itimerspec often = {{0, 2000000}, {0, 2000000}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, 0)) give_up("timer_create");
    enter();
    for (int i = 0; answered < 10 && i < 10000; i++) sleep_milliseconds(1);
    say("inside %s", answered >= 10 ? "ten" : "fewer");
    leave();
    say(", depth %u", depth());
}

static const struct test_case cases[] = {
    {"stop-the-world from a callback while another thread wants to visit", stop_the_world,
     "answered 1, its visit went on", 0, 0},
    {"setuid from a callback while another thread wants to visit", set_user, "setuid 0 setgid 0, visit went on", 0, 0},
    {"a callback that sleeps is stopped", stopped_in_callback, "stopped 3", 0, 0},
    {"setuid while another thread is inside", set_user_over_section, "0 0 inside, depth 0", 0, 0},
    {"cancellation inside a section", cancelled_in_section, "1 1 1 depth 0", 0, 0},
    {"a thread returns inside and holds the process's signal", held_by_returned_thread,
     "before 0, runs 1 code -1 value 31", 0, 0},
    {"a thread exits inside and holds the process's signal", held_by_exited_thread,
     "before 0, runs 1 code -1 value 31", 0, 0},
    {"stacks used again", stacks_again, "clean 40 of 40", 0, 0},
    {"one stack used again", own_stack_again, "clean 40 of 40", 0, 0},
    {"a timer that starts threads", timer_that_starts_threads, "inside ten, depth 0", 0, 0},
    {"a word for each thread", words_are_apart, "own 1 depth 0, other's 0, in the end 1", 0, 0},
    {"a thread started in a callback", started_in_callback, "blocked HUP 1 USR1 0 USR2 0, depth 0, runs 1", 0, 0},
};

int main(int argc, char **argv) { return RUN_CASES(cases); }
