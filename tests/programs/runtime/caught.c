// _dl_catch_exception and its kin in eight threads at once, nested, each with errors of its own. They are glibc's own interface
// (GLIBC_PRIVATE): declared here, as libraries of the C library's family use them.
#include "../dlfcn/report.h"
#include <pthread.h>
#include <stdbool.h>

struct dl_exception { const char *object, *message; char *buffer; };
int _dl_catch_exception(struct dl_exception *, void (*)(void *), void *);
int _dl_catch_error(const char **, const char **, bool *, void (*)(void *), void *);
void _dl_signal_exception(int, struct dl_exception *, const char *) __attribute__((noreturn));
void _dl_signal_error(int, const char *, const char *, const char *) __attribute__((noreturn));
__asm__(".symver _dl_catch_exception, _dl_catch_exception@GLIBC_PRIVATE\n"
        ".symver _dl_catch_error, _dl_catch_error@GLIBC_PRIVATE\n"
        ".symver _dl_signal_exception, _dl_signal_exception@GLIBC_PRIVATE\n"
        ".symver _dl_signal_error, _dl_signal_error@GLIBC_PRIVATE\n");

struct work { int thread, round, depth, wrong; };

static void nothing(void *unused) { (void)unused; }
static void fails(void *argument) {
    struct work *work = argument;
    char object[32], message[32];
    snprintf(object, sizeof object, "object %d", work->thread);
    snprintf(message, sizeof message, "message %d", work->round);
    if (work->depth < 3) {
        work->depth++;
        struct dl_exception inner = {0};
        int code = _dl_catch_exception(&inner, fails, work);
        work->depth--;
        if (code != work->round + 1 || strcmp(inner.object, object) || strcmp(inner.message, message)) work->wrong++;
        if (work->depth & 1) _dl_signal_exception(code, &inner, NULL);
    }
    _dl_signal_error(work->round + 1, object, NULL, message);
}

static void *catches(void *argument) {
    struct work *work = argument;
    for (work->round = 0; work->round < 2000; work->round++) {
        const char *object = "none", *message = "none";
        bool allocated = false;
        int code = _dl_catch_error(&object, &message, &allocated, fails, work);
        char want[32];
        snprintf(want, sizeof want, "message %d", work->round);
        if (code != work->round + 1 || !message || strcmp(message, want)) work->wrong++;
        struct dl_exception none = {"x", "x", NULL};
        if (_dl_catch_exception(&none, nothing, NULL) || none.message) work->wrong++;
    }
    return NULL;
}

int main(void) {
    pthread_t threads[8];
    struct work works[8] = {{0}};
    int wrong = 0;
    for (int i = 0; i < 8; i++) {
        works[i].thread = i;
        pthread_create(&threads[i], NULL, catches, &works[i]);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        wrong += works[i].wrong;
    }
    printf("wrong %d\n", wrong);
    return 0;
}
