// tiny: a thread library of one lock and one channel, as an example for sigblock.h. Its functions may be called from signal
// handlers: handlers never interrupt what it does under a lock. Others wrap sigaction(2) for that, and every handler then
// passes through them; here each such place is a section, and handlers are none of the library's business.
#pragma once
#include <stdint.h>

// A lock is only held inside a section, and waited for outside.
struct tiny_lock { unsigned state; };
void tiny_lock(struct tiny_lock *lock);
void tiny_unlock(struct tiny_lock *lock);

// Values on their way to a thread. A channel that is full refuses; an empty one is waited for, or not.
enum { TINY_ROOM = 4096 };
struct tiny_channel {
    struct tiny_lock lock;
    unsigned first, count, changes;
    uint64_t values[TINY_ROOM];
};
int tiny_send(struct tiny_channel *channel, uint64_t value);
int tiny_receive(struct tiny_channel *channel, uint64_t *value);
void tiny_wait(struct tiny_channel *channel);

// Locks that the calling thread holds.
extern __thread volatile int tiny_held;
