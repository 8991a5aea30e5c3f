#define _GNU_SOURCE
#include "tiny.h"
#include "sigblock.h"
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FREE, HELD, AWAITED };

__thread volatile int tiny_held;

static void wait_while(unsigned *word, unsigned value) {
    struct timespec limit = {0, 10000000};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &limit, NULL, 0);
}

void tiny_lock(struct tiny_lock *lock) {
    for (;;) {
        sigblock_enter();
        tiny_held++;
        unsigned free = FREE;
        if (__atomic_compare_exchange_n(&lock->state, &free, HELD, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
        tiny_held--;
        sigblock_leave();
        unsigned held = HELD;
        __atomic_compare_exchange_n(&lock->state, &held, AWAITED, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        wait_while(&lock->state, AWAITED);
    }
}

void tiny_unlock(struct tiny_lock *lock) {
    if (__atomic_exchange_n(&lock->state, FREE, __ATOMIC_RELEASE) == AWAITED)
        syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
    tiny_held--;
    sigblock_leave();
}

int tiny_send(struct tiny_channel *channel, uint64_t value) {
    tiny_lock(&channel->lock);
    int sent = channel->count < TINY_ROOM;
    if (sent) channel->values[(channel->first + channel->count++) % TINY_ROOM] = value;
    int was_empty = channel->count == 1;
    channel->changes++;
    tiny_unlock(&channel->lock);
    if (sent && was_empty) syscall(SYS_futex, &channel->changes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return sent;
}

int tiny_receive(struct tiny_channel *channel, uint64_t *value) {
    tiny_lock(&channel->lock);
    int received = channel->count > 0;
    if (received) {
        *value = channel->values[channel->first];
        channel->first = (channel->first + 1) % TINY_ROOM;
        channel->count--;
    }
    tiny_unlock(&channel->lock);
    return received;
}

void tiny_wait(struct tiny_channel *channel) {
    unsigned changes = __atomic_load_n(&channel->changes, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&channel->count, __ATOMIC_ACQUIRE) == 0) wait_while(&channel->changes, changes);
}
