//! fork(2), and whatever else copies the process: the child has one thread, and finds the rest of the loader as it was at that
//! moment, in the middle of what other threads were doing.
//!
//! No fork waits for the loader. The child of the C library's fork comes here at once, any other one notices at its first entry
//! that is more than reading (`sigblock::lineage`). It repairs: locks of threads that are not here are free, the list of threads holds the
//! calling one, an unfinished change of a writer's is dropped, and so is what other threads were doing to objects. What the
//! locks protect is either whole after every store (the heap, the list of threads) or has a spare (`writer`). A forked
//! copy of memory holds, for each thread, what it had stored up to some moment, in its order.

use crate::world::World;
use crate::writer;
use core::sync::atomic::Ordering;
use rtld_sys::thread;
use sigblock::{lineage, section};

/// Before anything is loaded or unloaded at run time, and before there is a second thread: from now on forks are noticed.
pub(crate) fn prepare(world: &World) {
    notice(world);
    lineage::watch();
}

/// Notices that this is the child of a fork. Called in the child of the C library's fork, before a lock other than a short
/// one is taken or waited for, and before there is a second thread.
#[inline]
pub fn notice(world: &World) {
    let current = lineage::current();
    if world.lineage.load(Ordering::Relaxed) != current {
        repair(world, current);
    }
}

#[cold]
#[inline(never)]
fn repair(world: &World, current: u32) {
    section::inside(|| {
        if world.lineage.swap(current, Ordering::Relaxed) == current {
            // A handler came first.
            return;
        }
        // SAFETY: threads of this process have thread pointers.
        let me = unsafe { thread::pointer() };
        world.iterating.only(me);
        world.threads.only(me);
        if let Some(host) = world.process.host {
            host.free_left_locks();
        }
        writer::repair(world, me);
    });
}
