// What the parts of the storm share: eight receivers and one sender, in memory shared between their two processes. Each
// counter has one writer.
#pragma once
#include "api.h"

// Numbers: queued ones (real-time) and plain ones, sent to a thread or to the process.
enum { THREADS = 8, QUEUED = 3, QUEUED_ANY = 2, PLAIN = 2, PLAIN_ANY = 2 };
static inline int queued(int i) { return SIGRTMIN + 4 + i; }
static inline int queued_any(int i) { return SIGRTMIN + 8 + i; }
static inline int plain(int i) { return i ? SIGUSR2 : SIGUSR1; }
static inline int plain_any(int i) { return i ? SIGPROF : SIGHUP; }

// One thread: what its handlers counted, and the sections it is in.
struct receiver {
    volatile pid_t tid;
    unsigned *word;
    // Raised between entering and leaving an outermost section; two counters that differ only there.
    volatile uint64_t depth, opened, closed;
    volatile uint64_t sections;
    // Handler runs, by number.
    volatile uint64_t queued[QUEUED], queued_any[QUEUED_ANY], plain[PLAIN], plain_any[PLAIN_ANY];
    volatile uint64_t own_sections; // opened by handlers
    // What must stay 0: runs inside a section by the program's count, by the word's, by the two counters; out of sequence,
    // of numbers sent to the thread and of numbers sent to the process.
    volatile uint64_t inside, raised, torn, disordered, disordered_any;
    uint64_t last[QUEUED], last_any[QUEUED_ANY];
} __attribute__((aligned(128)));

struct storm {
    struct receiver receivers[THREADS];
    // The sender's side: signals that the kernel took, by number.
    volatile uint64_t queued[THREADS][QUEUED], queued_any[QUEUED_ANY], plain[THREADS][PLAIN], plain_any[PLAIN_ANY];
    volatile uint64_t refused;    // for want of queue entries: not sent
    volatile uint64_t closings;   // rounds that ended in one plain signal each, all else having arrived
    volatile uint64_t unanswered; // plain signals of such a round that no handler run answered
    volatile uint64_t doubled;    // ... that more than one answered
    volatile uint64_t stalled;    // rounds whose signals or sections did not arrive in STALL seconds
    volatile int stop;            // set by the receivers' process
    int rate;                     // signals a second in sum
    int handlers_enter;           // handlers open sections, may interrupt one another, and run on a stack of their own
};

enum { STALL = 30 };

// sender.c: until `stop`, from a process of its own.
void send_signals(struct storm *storm, pid_t target);
// receiver.c
void install_handlers(const struct storm *storm);
void *receive(void *receiver);
extern volatile int receivers_quit;
// raised.c: the inline form of a section; 0 if it holds a signal and lets it go.
int check_raised_word(void);
