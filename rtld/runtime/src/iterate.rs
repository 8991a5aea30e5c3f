//! `dl_iterate_phdr`(3): what a callback is told about each object, and what an iteration holds meanwhile.
//!
//! Each step looks at the snapshot that is current then, so an object that was loaded meanwhile is told too, and one
//! that was unloaded is not. The object that a callback is told about is not unmapped before the next step.
//!
//! While a callback runs its thread is inside a section and owns the iterate lock, unless it did something in between that
//! ended the section; then both are taken again before the next step. The callback is called by an assembly thunk in whose
//! frame the [`Iteration`] lies; a callback that never returns leaves nothing, whichever way it goes (see
//! `sigblock::callback`).

use crate::pins;
use crate::thread_local;
use crate::world::{Handle, World};
use rtld_link::object::{Object, ObjectIndex};
use sigblock::callback::{self, Open, Release};

/// `struct dl_phdr_info` of <link.h>.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProgramHeaderInfo {
    address: usize,
    name: *const u8,
    headers: *const u8,
    count: u16,
    adds: u64,
    subs: u64,
    tls_module: usize,
    tls_data: usize,
}

impl ProgramHeaderInfo {
    /// What is known of an object before a thread asks; `counts` are those of loaded and unloaded objects.
    pub(crate) fn of(object: &Object, module: usize, (adds, subs): (u64, u64)) -> ProgramHeaderInfo {
        ProgramHeaderInfo {
            address: object.mapping.bias,
            name: object.path.as_ptr(),
            headers: object.mapping.headers.as_ptr(),
            count: object.mapping.headers.len() as u16,
            adds,
            subs,
            tls_module: module,
            tls_data: 0,
        }
    }
}

/// One object as callbacks are told of it.
#[derive(Debug)]
pub struct Visit {
    /// The object.
    pub(crate) index: ObjectIndex,
    /// Its handle, if it may be unloaded; null if not.
    pub(crate) handle: *mut Handle,
    /// All but the calling thread's block.
    pub(crate) information: ProgramHeaderInfo,
}

/// One call of `dl_iterate_phdr`. All of it is in the thunk's frame, and nothing of it needs to be dropped.
#[repr(C)]
#[derive(Debug)]
pub struct Iteration {
    /// The section; first, so that its release finds the rest.
    open: Open,
    world: *const World,
    /// What the callback is told.
    information: ProgramHeaderInfo,
    /// The object that it is told about, if that may be unloaded; null for none.
    visited: *mut Handle,
    /// Where to go on.
    next: ObjectIndex,
    /// This iteration took the iterate lock, and has not given it back.
    took_lock: bool,
    /// What the last callback returned.
    pub result: i32,
}

const NOTHING: ProgramHeaderInfo = ProgramHeaderInfo {
    address: 0,
    name: core::ptr::null(),
    headers: core::ptr::null(),
    count: 0,
    adds: 0,
    subs: 0,
    tls_module: 0,
    tls_data: 0,
};

/// Begins an iteration.
///
/// # Safety
/// `place` must have room for an [`Iteration`] in a frame that stays until [`step`] gave null, or that is unwound, or left
/// by a jump that drops records (`sigblock::callback`).
pub unsafe fn begin(world: &'static World, place: *mut Iteration) {
    let state = sigblock::current();
    let took_lock = world.iterating.enter(world, state);
    let iteration = Iteration {
        open: Open::new(release),
        world,
        information: NOTHING,
        visited: core::ptr::null_mut(),
        next: ObjectIndex(0),
        took_lock,
        result: 0,
    };
    // SAFETY: the caller's promise.
    unsafe { place.write(iteration) };
    // SAFETY: the section was entered above; the record stays (the caller's promise).
    unsafe { callback::open(state, place.cast()) };
}

/// One step: what to tell next, or null at the end. `result` is what the callback returned about the step before; anything
/// but 0 ends the iteration.
///
/// # Safety
/// The iteration was begun by the calling thread and has not ended.
pub unsafe fn step(place: *mut Iteration, result: i32) -> *mut ProgramHeaderInfo {
    let state = sigblock::current();
    // SAFETY: the calling thread's iteration; foreign code does not touch it.
    let iteration = unsafe { &mut *place };
    // SAFETY: the world is there for ever.
    let world = unsafe { &*iteration.world };
    if !iteration.open.is_raised() {
        iteration.took_lock = world.iterating.enter(world, state);
        // SAFETY: the section was entered a moment ago.
        unsafe { callback::open(state, &raw mut iteration.open) };
    }
    if !iteration.visited.is_null() {
        pins::end_visit(core::mem::replace(&mut iteration.visited, core::ptr::null_mut()));
    }
    state.rest();
    iteration.result = result;
    if result == 0 && look(world, iteration) {
        return &raw mut iteration.information;
    }
    if core::mem::take(&mut iteration.took_lock) {
        world.iterating.release();
    }
    // SAFETY: opened by `begin`.
    unsafe { callback::close(state, &raw mut iteration.open) };
    core::ptr::null_mut()
}

/// Gives back what an iteration holds.
///
/// # Safety
/// The record must be that of an iteration of the calling thread.
unsafe fn release(record: *mut Open, release: Release) {
    // SAFETY: the record comes first in its iteration.
    let iteration = unsafe { &mut *record.cast::<Iteration>() };
    if core::mem::take(&mut iteration.took_lock) {
        // SAFETY: the world is there for ever.
        unsafe { &*iteration.world }.iterating.release();
    }
    if release == Release::Drop {
        pins::end_visit(core::mem::replace(&mut iteration.visited, core::ptr::null_mut()));
    }
}

/// Notes what to tell of the first object from `next` on; false after the last one. If it may be unloaded its visit has
/// begun. The calling thread is inside the iteration's section.
fn look(world: &World, iteration: &mut Iteration) -> bool {
    // SAFETY: inside a section, and the snapshot is not used after this function.
    let snapshot = unsafe { world.snapshot() };
    let next = iteration.next;
    // Where nothing was unloaded an object's place is its index.
    let place = next.position();
    let first = match snapshot.visits.get(place) {
        Some(visit) if visit.index == next => place,
        _ => snapshot.visits.partition_point(|visit| visit.index < next),
    };
    for visit in snapshot.visits.get(first..).unwrap_or_default() {
        if visit.handle.is_null() || pins::visit(visit.handle) {
            iteration.visited = visit.handle;
            iteration.next = ObjectIndex(visit.index.0 + 1);
            iteration.information = visit.information;
            let module = visit.information.tls_module;
            if module != 0 {
                iteration.information.tls_data = thread_local::block(snapshot, module).unwrap_or(0);
            }
            return true;
        }
    }
    false
}
