// throw THROWS [through]: exceptions caught at several depths. Then jumps that leave callbacks of dl_iterate_phdr, and with
// `through` exceptions and ends of threads that do: they unwind glibc's own frames, which only libgcc can. Prints what came of
// each, the same with and without libsigblock; a word that is left raised is told.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <link.h>
#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>

extern "C" __attribute__((weak)) unsigned *sigblock_word(void);

static unsigned raised() { return sigblock_word ? *sigblock_word() : 0; }

static __attribute__((noinline)) void deep(int depth) {
    if (depth == 0) throw std::runtime_error("deep");
    deep(depth - 1);
    asm volatile("");
}

static int throwing(dl_phdr_info *, size_t, void *) { throw 7; }

static jmp_buf back;
static int jumping(dl_phdr_info *, size_t, void *) { longjmp(back, 1); }

static int ending(dl_phdr_info *, size_t, void *) { pthread_exit(reinterpret_cast<void *>(5)); }

static int sleeping(dl_phdr_info *, size_t, void *) {
    sleep(100);
    return 0;
}

static int nesting(dl_phdr_info *, size_t, void *count) {
    auto one = [](dl_phdr_info *, size_t, void *inner) { return ++*static_cast<int *>(inner), 0; };
    int inner = 0;
    dl_iterate_phdr(one, &inner);
    *static_cast<int *>(count) += inner > 0;
    return 0;
}

static void *run(void *callback) {
    dl_iterate_phdr(reinterpret_cast<int (*)(dl_phdr_info *, size_t, void *)>(callback), nullptr);
    return nullptr;
}

static long result_of(int (*callback)(dl_phdr_info *, size_t, void *), bool cancel) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, nullptr, run, reinterpret_cast<void *>(callback));
    if (cancel) usleep(50000), pthread_cancel(thread);
    pthread_join(thread, &result);
    return reinterpret_cast<long>(result);
}

int main(int argc, char **argv) {
    bool through = argc > 2;
    int throws = argc > 1 ? atoi(argv[1]) : 100, caught = 0, passed = 0, jumped = 0, objects = 0;
    for (int i = 0; i < throws; i++) {
        try {
            deep(i % 20);
        } catch (const std::exception &) {
            caught++;
        }
        try {
            if (through) dl_iterate_phdr(throwing, nullptr);
        } catch (int number) {
            passed += number == 7;
        }
        if (raised()) return printf("raised %#x by %d\n", raised(), i), 1;
    }
    dl_iterate_phdr(nesting, &objects);
    long ended = through ? result_of(ending, false) : 0, cancelled = through ? result_of(sleeping, true) : 0;
    // Last: glibc's lock stays with the thread that jumped.
    if (setjmp(back)) jumped++;
    else dl_iterate_phdr(jumping, nullptr);
    printf("caught %d passed %d nested %d ended %ld cancelled %ld jumped %d raised %#x\n", caught, passed, objects > 0, ended,
           cancelled, jumped, raised());
    return 0;
}
