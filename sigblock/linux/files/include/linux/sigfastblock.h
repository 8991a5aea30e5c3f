/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocking of signals by a word in user memory: what the signal code asks.
 *
 * Of each task, all three under ->siglock but the word, which only current
 * changes:
 *	sigfb_word	address of the word, NULL without registration
 *	sigfb_held	what is blocked because the word was seen raised
 *	sigfb_forced	what comes through all the same: raised by the task's
 *			own fault
 * Of each process: sigfb_pass, what its sections do not hold.
 */
#ifndef _LINUX_SIGFASTBLOCK_H
#define _LINUX_SIGFASTBLOCK_H

#include <linux/sched.h>
#include <linux/sched/signal.h>

#ifdef CONFIG_SIGFASTBLOCK
/* kernel/signal.c: wake others for what current does not take. Under ->siglock. */
void sigfastblock_retarget(sigset_t *which);

long prctl_sigfastblock(unsigned long cmd, unsigned long arg1,
			unsigned long arg2, unsigned long arg3);
void sigfastblock_fork(struct task_struct *child, u64 clone_flags);
void sigfastblock_exec(void);
void __sigfastblock_sync(void);
void __sigfastblock_look(void);
void __sigfastblock_blocked(struct task_struct *t, sigset_t *blocked);
void __sigfastblock_force(int sig, struct task_struct *t);
bool __sigfastblock_defers(int sig, struct task_struct *t);
bool __sigfastblock_may_hold(int sig, struct task_struct *t);

/* Are signals of the task held at this moment? */
static inline bool sigfastblock_active(struct task_struct *t)
{
	return unlikely(!sigisemptyset(&t->sigfb_held));
}

static inline bool sigfastblock_held(int sig, struct task_struct *t)
{
	return sigfastblock_active(t) && sigismember(&t->sigfb_held, sig);
}

/* A signal is pending for current, which may fault and sleep here. */
static inline void sigfastblock_sync(void)
{
	if (unlikely(current->sigfb_word))
		__sigfastblock_sync();
}

/* current is about to return to user mode, signals may have been held. */
static inline void sigfastblock_resume(void)
{
	if (sigfastblock_active(current))
		__sigfastblock_sync();
}

/*
 * current sets its mask: look at the word as well, so that a section can end
 * where a filter refuses UNBLOCK.
 */
static inline void sigfastblock_look(void)
{
	if (sigfastblock_active(current))
		__sigfastblock_look();
}

/* The signal mask, with what the word blocks; space is for their union. */
static inline sigset_t *sigfastblock_blocked(struct task_struct *t,
					     sigset_t *space)
{
	if (!sigfastblock_active(t))
		return &t->blocked;
	__sigfastblock_blocked(t, space);
	return space;
}

/* A sender's question: does the task have this signal held? */
static inline bool sigfastblock_defers(int sig, struct task_struct *t)
{
	return sigfastblock_active(t) && __sigfastblock_defers(sig, t);
}

/* The same before the task has looked at its word: might it hold it? */
static inline bool sigfastblock_may_hold(int sig, struct task_struct *t)
{
	return unlikely(READ_ONCE(t->sigfb_word)) &&
	       __sigfastblock_may_hold(sig, t);
}

/* The task's own fault raises this signal: it must not wait. */
static inline void sigfastblock_force(int sig, struct task_struct *t)
{
	if (unlikely(t->sigfb_word))
		__sigfastblock_force(sig, t);
}

/* current has dequeued this signal to deliver it. */
static inline void sigfastblock_took(int sig)
{
	if (unlikely(current->sigfb_word))
		sigdelset(&current->sigfb_forced, sig);
}

/* current waits for signals: those, all outside the mask, may wake it. */
static inline sigset_t sigfastblock_wait(const sigset_t *mask)
{
	sigset_t held = current->sigfb_held;

	sigandsets(&current->sigfb_held, &held, mask);
	return held;
}

static inline void sigfastblock_waited(const sigset_t *held)
{
	current->sigfb_held = *held;
	/* Of two that came for the process only one was waited for */
	if (sigfastblock_active(current))
		sigfastblock_retarget(&current->sigfb_held);
}
#else
static inline long prctl_sigfastblock(unsigned long cmd, unsigned long arg1,
				      unsigned long arg2, unsigned long arg3)
{
	return -EINVAL;
}

static inline sigset_t *sigfastblock_blocked(struct task_struct *t,
					     sigset_t *space)
{
	return &t->blocked;
}

static inline sigset_t sigfastblock_wait(const sigset_t *mask)
{
	return *mask;
}

static inline void sigfastblock_waited(const sigset_t *held) { }
static inline void sigfastblock_fork(struct task_struct *child, u64 clone_flags) { }
static inline void sigfastblock_exec(void) { }
static inline void sigfastblock_sync(void) { }
static inline void sigfastblock_resume(void) { }
static inline void sigfastblock_look(void) { }
static inline void sigfastblock_force(int sig, struct task_struct *t) { }
static inline void sigfastblock_took(int sig) { }
static inline bool sigfastblock_held(int sig, struct task_struct *t) { return false; }
static inline bool sigfastblock_defers(int sig, struct task_struct *t) { return false; }
static inline bool sigfastblock_may_hold(int sig, struct task_struct *t) { return false; }
#endif

#endif /* _LINUX_SIGFASTBLOCK_H */
