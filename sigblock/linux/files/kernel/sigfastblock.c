// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocking of signals by a word in user memory.
 *
 * A sender cannot read the word of its target: that is in another address
 * space, may be paged out, and the sender holds ->siglock.  So the target
 * decides, in get_signal(), on its own way out to user mode, where it may fault
 * and sleep.  If the count in the word is not zero, it sets the flag
 * SIGFASTBLOCK_PEND in the word and takes what the section holds into
 * ->sigfb_held, which from then on counts as blocked everywhere: TIF_SIGPENDING
 * goes away, system calls sleep, others get what is for the process.
 *
 * Only the owning thread writes the word, and here it is in the kernel: nothing
 * can change between our read and our write.  The flag is set before anything
 * is held, so whoever ends the section afterwards sees it and calls UNBLOCK.
 */
#include <linux/compiler.h>
#include <linux/resume_user_mode.h>
#include <linux/sched/signal.h>
#include <linux/sigfastblock.h>
#include <linux/uaccess.h>
#include <uapi/linux/sigfastblock.h>

/* What sections of the process of t hold. Under ->siglock. */
static sigset_t section_mask(struct task_struct *t)
{
	sigset_t mask;

	siginitsetinv(&mask, sigmask(SIGKILL) | sigmask(SIGSTOP));
	sigandnsets(&mask, &mask, &t->signal->sigfb_pass);
	return mask;
}

static void hold(void)
{
	sigset_t unblocked;

	spin_lock_irq(&current->sighand->siglock);
	current->sigfb_held = section_mask(current);
	/* Let the others have what we will not take for now */
	sigandnsets(&unblocked, &current->sigfb_held, &current->blocked);
	sigfastblock_retarget(&unblocked);
	recalc_sigpending();
	spin_unlock_irq(&current->sighand->siglock);
}

static void release(void)
{
	if (sigisemptyset(&current->sigfb_held) &&
	    sigisemptyset(&current->sigfb_forced))
		return;
	spin_lock_irq(&current->sighand->siglock);
	sigemptyset(&current->sigfb_held);
	sigemptyset(&current->sigfb_forced);
	recalc_sigpending();
	spin_unlock_irq(&current->sighand->siglock);
}

static void forget(void)
{
	WRITE_ONCE(current->sigfb_word, NULL);
	release();
}

/*
 * The word cannot be accessed.  Registration goes first, or the signal's own
 * delivery would come here again.
 */
static void bad_word(int code)
{
	u32 __user *word = current->sigfb_word;

	/* An access also fails when a fatal signal arrives meanwhile */
	if (fatal_signal_pending(current))
		return;
	forget();
	force_sig_fault(SIGSEGV, code, word);
}

/*
 * Look at the word of the current thread and hold or release its signals.
 * Runs with a signal pending, or before a return to user mode while signals
 * are held, in case user space has ended the section without UNBLOCK.
 */
void __sigfastblock_sync(void)
{
	u32 __user *word = current->sigfb_word;
	u32 value;

	if (get_user(value, word)) {
		bad_word(SEGV_MAPERR);
		return;
	}
	if (!(value & ~SIGFASTBLOCK_FLAGS)) {
		if (sigfastblock_active(current))
			release();
		return;
	}
	if (!(value & SIGFASTBLOCK_PEND) &&
	    put_user(value | SIGFASTBLOCK_PEND, word)) {
		bad_word(SEGV_ACCERR);
		return;
	}
	if (!sigfastblock_active(current))
		hold();
}

void __sigfastblock_look(void)
{
	set_notify_resume(current);
}

void __sigfastblock_blocked(struct task_struct *t, sigset_t *blocked)
{
	sigandnsets(blocked, &t->sigfb_held, &t->sigfb_forced);
	sigorsets(blocked, blocked, &t->blocked);
}

/*
 * The signal may be pending already, sent by another and held: then the sender
 * of this one queues nothing and wakes nobody, and the fault would repeat for ever.
 */
void __sigfastblock_force(int sig, struct task_struct *t)
{
	sigaddset(&t->sigfb_forced, sig);
	if (sigfastblock_held(sig, t))
		signal_wake_up(t, 0);
}

bool __sigfastblock_defers(int sig, struct task_struct *t)
{
	if (!sigismember(&t->sigfb_held, sig) ||
	    sigismember(&t->sigfb_forced, sig))
		return false;
	/* No wake-up, but look at the word before the next user instruction */
	set_notify_resume(t);
	return true;
}

bool __sigfastblock_may_hold(int sig, struct task_struct *t)
{
	return !sigismember(&t->signal->sigfb_pass, sig);
}

/*
 * A forked child runs on in a copy of the word, a vfork()ed one in the very
 * word; any other child that shares the memory, or got a thread area of its
 * own, must register for itself.  Nothing is pending for the child.
 */
void sigfastblock_fork(struct task_struct *child, u64 clone_flags)
{
	sigemptyset(&child->sigfb_held);
	sigemptyset(&child->sigfb_forced);
	if ((clone_flags & (CLONE_THREAD | CLONE_SETTLS)) ||
	    (clone_flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM)
		child->sigfb_word = NULL;
	if (!(clone_flags & CLONE_THREAD))
		child->signal->sigfb_pass = current->signal->sigfb_pass;
}

/* The only thread of the process starts a new program. */
void sigfastblock_exec(void)
{
	forget();
	sigemptyset(&current->signal->sigfb_pass);
}

static long set_word(u32 __user *word)
{
	u32 value;

	if (current->sigfb_word)
		return -EBUSY;
	if (!word || !IS_ALIGNED((unsigned long)word, sizeof(u32)))
		return -EINVAL;
	if (get_user(value, word))
		return -EFAULT;
	WRITE_ONCE(current->sigfb_word, word);
	return 0;
}

static long unblock(void)
{
	u32 __user *word = current->sigfb_word;
	u32 value;

	if (!word)
		return -EINVAL;
	if (get_user(value, word))
		goto bad;
	if (value != SIGFASTBLOCK_PEND)
		return -EBUSY;
	if (put_user(0, word))
		goto bad;
	/* What is pending now is delivered on the way out */
	release();
	return 0;
bad:
	forget();
	return -EFAULT;
}

static long unset_word(void)
{
	u32 value;

	if (!current->sigfb_word)
		return -EINVAL;
	if (get_user(value, current->sigfb_word)) {
		forget();
		return -EFAULT;
	}
	if (value & ~SIGFASTBLOCK_FLAGS)
		return -EBUSY;
	forget();
	return 0;
}

/*
 * A set is 64 bits, bit n - 1 for signal n, whatever the architecture and the
 * task's word size; signals above 64 (MIPS) are always held.
 */
static u64 from_sigset(const sigset_t *set)
{
#if BITS_PER_LONG == 64
	return set->sig[0];
#else
	return set->sig[0] | (u64)set->sig[1] << 32;
#endif
}

static void to_sigset(sigset_t *set, u64 bits)
{
	sigemptyset(set);
	set->sig[0] = bits;
#if BITS_PER_LONG == 32
	set->sig[1] = bits >> 32;
#endif
}

/* Threads that hold signals now keep what they hold until their section ends. */
static long change_mask(u64 __user *new, u64 __user *old)
{
	sigset_t pass;
	u64 bits = 0, before;

	if (new && copy_from_user(&bits, new, sizeof(bits)))
		return -EFAULT;
	to_sigset(&pass, ~bits);

	spin_lock_irq(&current->sighand->siglock);
	pass = new ? pass : current->signal->sigfb_pass;
	swap(pass, current->signal->sigfb_pass);
	spin_unlock_irq(&current->sighand->siglock);

	before = ~from_sigset(&pass) & ~(u64)(sigmask(SIGKILL) | sigmask(SIGSTOP));
	if (old && copy_to_user(old, &before, sizeof(before)))
		return -EFAULT;
	return 0;
}

long prctl_sigfastblock(unsigned long cmd, unsigned long arg1,
			unsigned long arg2, unsigned long arg3)
{
	if (arg3)
		return -EINVAL;
	if (cmd == PR_SIGFASTBLOCK_MASK)
		return change_mask((u64 __user *)arg1, (u64 __user *)arg2);
	if (arg2)
		return -EINVAL;
	if (cmd == PR_SIGFASTBLOCK_SETPTR)
		return set_word((u32 __user *)arg1);
	if (arg1)
		return -EINVAL;
	if (cmd == PR_SIGFASTBLOCK_UNBLOCK)
		return unblock();
	if (cmd == PR_SIGFASTBLOCK_UNSETPTR)
		return unset_word();
	return -EINVAL;
}
