//! What is left to be done with objects that were just published: resolvers, and what is constant after them. Owns its notes.
//!
//! It is done outside the writer lock, since resolvers are foreign code. So a fork may come meanwhile: the child has the notes,
//! and does what the thread that is not there has left, before it opens anything.

use crate::initialise;
use crate::resolve;
use crate::thread_local;
use crate::world::World;
use crate::writer::{self, State};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use rtld_link::deferred::{CopiedRange, Deferred, Resolvers};
use rtld_link::error::Error;
use rtld_link::fallible::{OutOfMemory, try_box, try_push};
use rtld_link::object::{Object, ObjectIndex};
use rtld_link::protect;
use rtld_link::static_tls::Module;
use rtld_sys::thread;

/// Objects that are published and not yet complete.
pub(crate) struct Fresh {
    objects: Vec<(ObjectIndex, &'static Object)>,
    modules: Vec<Module>,
    deferred: Vec<Deferred>,
    copies: Vec<CopiedRange>,
    /// The thread, by its thread pointer, that completes them; 0 if it is not here, in the child of a fork.
    owner: AtomicUsize,
    /// It was another thread's, which is not here.
    was_left: AtomicBool,
    /// All resolvers have run: from then on slots may be constant.
    is_resolved: AtomicBool,
}

/// What the calling thread is known by.
fn me() -> usize {
    // SAFETY: threads of this process have thread pointers.
    unsafe { thread::pointer() }
}

impl Fresh {
    /// Notes what the calling thread is to do once the state is published.
    pub(crate) fn note(
        state: &mut State,
        objects: Vec<(ObjectIndex, &'static Object)>,
        modules: Vec<Module>,
        deferred: Vec<Deferred>,
        copies: Vec<CopiedRange>,
    ) -> Result<&'static Fresh, OutOfMemory> {
        let (was_left, is_resolved) = (AtomicBool::new(false), AtomicBool::new(false));
        let owner = AtomicUsize::new(me());
        let fresh = Fresh { objects, modules, deferred, copies, owner, was_left, is_resolved };
        let fresh = Box::into_raw(try_box(fresh)?);
        // SAFETY: made a moment ago, and freed only by free().
        let noted: &'static Fresh = unsafe { &*fresh };
        try_push(&mut state.fresh, noted).inspect_err(|_| free(noted))?;
        Ok(noted)
    }

    /// Fills the blocks of static modules in every thread.
    pub(crate) fn fill_modules(&self, world: &World) {
        self.modules.iter().for_each(|module| thread_local::fill_everywhere(world, module));
    }

    fn resolve(&self, world: &World) -> Result<(), Error> {
        if self.is_resolved.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.deferred.is_empty() {
            let call = resolve::call(world);
            let table = writer::write(world, |state| state.objects.table().try_clone())?;
            let resolvers = Resolvers {
                objects: &table,
                copies: &self.copies,
                modules: &[],
                thread_pointer: me(),
                pages: world.process.pages,
                call: &call,
            };
            resolve::run(&resolvers, &self.deferred)?;
            // Images may hold slots; no code of the modules has run, so their blocks can be filled once more.
            self.fill_modules(world);
        }
        self.is_resolved.store(true, Ordering::Release);
        Ok(())
    }
}

fn free(fresh: &'static Fresh) {
    // SAFETY: made by note() from a box; it is in no list, and its one user is the caller.
    drop(unsafe { Box::from_raw(core::ptr::from_ref(fresh).cast_mut()) });
}

/// Drops the note of something that was not published.
pub(crate) fn forget(state: &mut State, fresh: &'static Fresh) {
    state.fresh.retain(|&noted| !core::ptr::eq(noted, fresh));
    free(fresh);
}

/// Runs the resolvers, makes constant what is, and drops the note. If that fails nobody gets a handle to the objects any more.
pub(crate) fn complete(world: &World, fresh: &'static Fresh) -> Result<(), Error> {
    let mut result = fresh.resolve(world);
    if result.is_ok() {
        result =
            fresh.objects.iter().try_for_each(|(_, object)| protect::protect_constant(object, world.process.pages));
    }
    writer::write(world, |state| {
        state.fresh.retain(|&noted| !core::ptr::eq(noted, fresh));
        for &(index, _) in &fresh.objects {
            let handle = state.handle(index);
            match result {
                Err(_) => initialise::give_up(handle),
                Ok(()) if fresh.was_left.load(Ordering::Relaxed) => initialise::pass_on(world, handle),
                Ok(()) => {}
            }
        }
    });
    // Only now: the child of a fork in the middle of that finds the note again.
    free(fresh);
    result
}

/// In the child of a fork, under the writer lock: what other threads were to complete is left. Tells whether there is something.
pub(crate) fn leave(state: &State, me: usize) -> bool {
    let mut left = false;
    for fresh in state.fresh.iter().filter(|fresh| fresh.owner.load(Ordering::Relaxed) != me) {
        fresh.owner.store(0, Ordering::Relaxed);
        fresh.was_left.store(true, Ordering::Relaxed);
        left = true;
    }
    left
}

/// Completes what threads have left that are not here. Who needs the objects initialises them.
pub(crate) fn complete_left(world: &World) {
    while world.has_left.load(Ordering::Relaxed) {
        let left = writer::write(world, |state| {
            let left = state.fresh.iter().copied().find(|fresh| fresh.owner.load(Ordering::Relaxed) == 0);
            match left {
                Some(fresh) => {
                    fresh.owner.store(me(), Ordering::Relaxed);
                    fresh.objects.iter().for_each(|&(index, _)| initialise::claim(state.handle(index)));
                }
                None => world.has_left.store(false, Ordering::Relaxed),
            }
            left
        });
        if let Some(fresh) = left {
            // Where it fails, the objects say so to who opens them.
            let _ = complete(world, fresh);
        }
    }
}
