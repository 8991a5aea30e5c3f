//! fork(2): around it the calling thread holds the writer lock and the list of threads, so that the child finds nothing half
//! done. In the child only that thread is left; what others were doing to objects is dropped.
//!
//! A process that is copied without the C library's `fork` does not come here; see `writer` for what is done for it.

use crate::initialise;
use crate::threads;
use crate::world::World;
use crate::writer;
use rtld_sys::thread;

/// Before the fork. One of [`in_parent`] and [`in_child`] must follow in the same thread.
pub fn before(world: &World) {
    writer::hold(world);
    world.threads.hold();
}

/// After the fork, in the parent.
pub fn in_parent(world: &World) {
    world.threads.let_go();
    writer::let_go(world);
}

/// After the fork, in the child.
pub fn in_child(world: &World) {
    // SAFETY: threads of this process have thread pointers.
    let me = unsafe { thread::pointer() };
    world.threads.let_go();
    // A thread that is not here may have been replacing its last error: nobody may free that again.
    world.threads.for_each(|control| {
        if control != me {
            // SAFETY: control blocks stay mapped while they are in the list.
            unsafe { threads::error_slot_of(world, control).write(0) };
        }
    });
    world.threads.only(me);
    writer::let_go(world);
    writer::write(world, |state| {
        state.unloading = state.unloading.filter(|&thread| thread == me);
        state.handles.iter().for_each(|&handle| initialise::drop_work_of_others(handle));
    });
}
