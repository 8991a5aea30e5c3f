// The receivers of the storm: a loop of sections in each thread, and the handlers that look where they arrive.
#include "storm.h"
#include <errno.h>
#include <sys/mman.h>

volatile int receivers_quit;
static int handlers_enter;
static __thread struct receiver *self;

// A section by calls, with one nested in it.
static void by_calls(struct receiver *r) {
    sigblock_enter();
    bump(&r->depth);
    bump(&r->opened);
    sigblock_enter();
    sigblock_leave();
    bump(&r->closed);
    r->depth = 0;
    sigblock_leave();
}

// The same by single instructions on the word.
static void by_word(struct receiver *r) {
    raise_word(r->word);
    bump(&r->depth);
    bump(&r->opened);
    raise_word(r->word);
    lower_word(r->word);
    bump(&r->closed);
    r->depth = 0;
    end_raised(r->word);
}

static void look(struct receiver *r) {
    if (r->depth) bump(&r->inside);
    if (*(volatile unsigned *)r->word & COUNT) bump(&r->raised);
    // Handlers that interrupt this one between two reads change both: what is read must have stood still.
    uint64_t opened, closed;
    do opened = r->opened, closed = r->closed;
    while (opened != r->opened);
    if (opened != closed) bump(&r->torn);
}

// Numbers of one kind to one receiver come with 1, 2, 3 ...; of those sent to the process each thread gets some.
static void in_sequence(struct receiver *r, uint64_t *last, uint64_t value, int gaps) {
    if (!gaps && value != *last + 1) bump(&r->disordered);
    if (gaps && value <= *last) bump(&r->disordered_any);
    *last = value;
}

static void handler(int number, siginfo_t *info, void *context) {
    (void)context;
    struct receiver *r = self;
    int error = errno;
    look(r);
    uint64_t value = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
    for (int i = 0; i < QUEUED; i++)
        if (number == queued(i)) in_sequence(r, &r->last[i], value, 0), bump(&r->queued[i]);
    for (int i = 0; i < QUEUED_ANY; i++)
        if (number == queued_any(i)) in_sequence(r, &r->last_any[i], value, 1), bump(&r->queued_any[i]);
    for (int i = 0; i < PLAIN; i++)
        if (number == plain(i)) bump(&r->plain[i]);
    for (int i = 0; i < PLAIN_ANY; i++)
        if (number == plain_any(i)) bump(&r->plain_any[i]);
    if (handlers_enter) {
        for (int i = 0; i < 20; i++) by_calls(r);
        bump(&r->own_sections);
        look(r);
    }
    errno = error;
}

void install_handlers(const struct storm *storm) {
    handlers_enter = storm->handlers_enter;
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (handlers_enter) {
        sigemptyset(&action.sa_mask);
        action.sa_flags |= SA_ONSTACK;
    } else {
        sigfillset(&action.sa_mask);
    }
    int failed = 0;
    for (int i = 0; i < QUEUED; i++) failed |= sigaction(queued(i), &action, NULL);
    for (int i = 0; i < QUEUED_ANY; i++) failed |= sigaction(queued_any(i), &action, NULL);
    for (int i = 0; i < PLAIN; i++) failed |= sigaction(plain(i), &action, NULL);
    for (int i = 0; i < PLAIN_ANY; i++) failed |= sigaction(plain_any(i), &action, NULL);
    if (failed) perror("sigaction"), exit(2);
}

// Room for a frame of every number on another, and more.
static void use_alternate_stack(void) {
    enum { SIZE = 1 << 18 };
    stack_t stack = {.ss_size = SIZE};
    stack.ss_sp = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL)) perror("sigaltstack"), exit(2);
}

// The thread starts with everything blocked, as its creator is, and unblocks when it can be found.
void *receive(void *receiver) {
    struct receiver *r = receiver;
    int inlined = word_counts();
    self = r;
    r->word = sigblock_word();
    if (handlers_enter) use_alternate_stack();
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    r->tid = (pid_t)syscall(SYS_gettid);
    for (uint64_t n = 0; !receivers_quit; n++) {
        if (inlined && n & 1) by_word(r);
        else by_calls(r);
        bump(&r->sections);
    }
    return NULL;
}
