//! fork(2): around it the calling thread keeps the writer lock and the list of threads, so that the child finds nothing half
//! done. In the child only that thread is left; what others were doing to objects is dropped.
//!
//! A process that is copied without the C library's `fork` does not come here, but is noticed later: by a word that the
//! kernel clears in the child.

use crate::initialise;
use crate::world::World;
use crate::writer;
use rtld_sys::thread;

fn me() -> usize {
    // SAFETY: threads of this process have thread pointers.
    unsafe { thread::pointer() }
}

/// Before the fork. One of [`in_parent`] and [`in_child`] must follow in the same thread.
pub fn before(world: &World) {
    writer::keep(world);
    world.threads.keep();
}

/// After the fork, in the parent.
pub fn in_parent(world: &World) {
    world.threads.let_go();
    writer::let_go(world);
}

/// After the fork, in the child.
pub fn in_child(world: &World) {
    let me = me();
    world.threads.let_go();
    world.iterating.only(me);
    world.threads.only(me);
    writer::let_go(world);
    writer::write(world, |state| {
        state.unloading = state.unloading.filter(|&thread| thread == me);
        state.handles.iter().for_each(|&handle| initialise::drop_work_of_others(handle));
    });
}

/// Notices that this is the child of a fork that we were not told of. Whoever held a lock may not be here. Called before a
/// lock is waited for, and before there is a second thread.
pub(crate) fn notice(world: &World) {
    if writer::is_unexpected_child(world) {
        let me = me();
        writer::reset(world);
        world.threads.reset();
        world.iterating.only(me);
        world.threads.only(me);
    }
}
