//! Runs initialisers and finalisers. No lock is held while they run: they are the program's own code and may do anything.
//!
//! How far an object is, is one word of its handle: new; being brought up, or initialised, by a thread; initialised; being
//! finalised; finalised; failed. A thread that needs an object which another one is initialising waits; the initialising
//! thread itself, and lookups, do not. Nobody waits for start-up objects: their initialisers may themselves wait for
//! threads that open something. Nobody waits in a circle either: who would close one goes on with the object as it is,
//! as a thread does that meets an object which it is initialising itself.

use crate::call;
use crate::threads;
use crate::world::{Arguments, Handle, World};
use crate::writer::{self, State};
use core::sync::atomic::{AtomicU32, Ordering};
use rtld_elf::Range;
use rtld_link::deferred::is_code;
use rtld_link::error::{Error, Reason};
use rtld_link::init_order::is_first;
use rtld_link::object::{Object, ObjectIndex, Role};
use rtld_sys::{lock, thread};

/// Nothing of the object has run.
pub const NEW: u32 = 0;
/// All initialisers have run.
pub const READY: u32 = 1;
/// Its finalisers are running.
pub const FINALISING: u32 = 2;
/// Its finalisers have run.
pub const FINALISED: u32 = 3;
/// The thread that the handle names is relocating it.
const BRINGING_UP: u32 = 4;
/// The thread that the handle names is initialising it.
const INITIALISING: u32 = 5;
/// Its resolvers failed: nobody gets a handle to it any more.
pub const FAILED: u32 = 6;

/// What the calling thread is known by: its thread pointer.
fn me() -> usize {
    // SAFETY: threads of this process have thread pointers.
    unsafe { thread::pointer() }
}

/// The word of an object.
pub(crate) fn progress(handle: *mut Handle) -> Option<&'static AtomicU32> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: callers hold the writer lock, or the object is held by an open handle of theirs.
    Some(unsafe { &(*handle).progress })
}

/// Says that the calling thread brings an object up.
pub(crate) fn claim(handle: *mut Handle) {
    if let Some(word) = progress(handle) {
        set_owner(handle);
        word.store(BRINGING_UP, Ordering::Release);
    }
}

pub(crate) fn set_owner(handle: *mut Handle) {
    // SAFETY: as progress().
    unsafe { (*handle).owner.store(me(), Ordering::Release) };
}

/// Whether the calling thread is bringing an object up or initialising it.
pub(crate) fn is_under_way_here(handle: *mut Handle) -> bool {
    let under_way = |word: &AtomicU32| matches!(word.load(Ordering::Acquire), BRINGING_UP | INITIALISING);
    progress(handle).is_some_and(under_way) && is_mine(handle)
}

/// Gives up an object that the calling thread was bringing up, and tells those who wait for it.
pub(crate) fn give_up(handle: *mut Handle) {
    if is_under_way_here(handle)
        && let Some(word) = progress(handle)
    {
        word.store(FAILED, Ordering::Release);
        lock::wake_all(word);
    }
}

/// Leaves an object that the calling thread has brought up to who initialises it.
pub(crate) fn pass_on(world: &World, handle: *mut Handle) {
    if is_under_way_here(handle)
        && let Some(word) = progress(handle)
    {
        world.waiting.tell(word, NEW);
    }
}

/// In the child of a fork, whose only thread is the calling one: what other threads were doing to an object stays undone.
/// Initialisers that had begun are not begun again.
pub(crate) fn drop_work_of_others(handle: *mut Handle) {
    let Some(word) = progress(handle) else { return };
    let next = match word.load(Ordering::Acquire) {
        BRINGING_UP => NEW,
        INITIALISING => READY,
        FINALISING => FINALISED,
        _ => return,
    };
    if !is_mine(handle) {
        word.store(next, Ordering::Release);
    }
}

fn is_mine(handle: *mut Handle) -> bool {
    // SAFETY: as progress().
    unsafe { (*handle).owner.load(Ordering::Acquire) == me() }
}

/// Values in the arrays that are no functions: null, and the end mark of old crtbegin files.
const NO_FUNCTIONS: [usize; 2] = [0, usize::MAX];

/// Stops everything because an object names a function that is none.
pub type Refuse = fn(&Error) -> !;

/// The function at an address, if it is inside executable memory; else the end.
fn checked(world: &World, object: &Object, function: usize, refuse: Refuse) -> usize {
    let valid = threads::read(world, |snapshot| {
        let holder = snapshot.object_at(function).and_then(|index| snapshot.objects.get(index));
        holder.is_some_and(|holder| is_code(holder, function))
    });
    if !valid {
        refuse(&Reason::FunctionOutside { address: function }.of(object.path.as_bytes()));
    }
    function
}

/// Runs the program's preinitialisers, then the initialisers of all start-up libraries in order. The program's own are
/// its start code's business.
///
/// # Safety
/// All objects must be relocated and the main thread complete.
pub unsafe fn run_at_start(world: &World, order: &[ObjectIndex], refuse: Refuse) {
    let (first, program) = writer::write(world, |state| {
        let table = &state.objects;
        (order.iter().take_while(|&&index| is_first(table, index)).count(), table.get(ObjectIndex(0)))
    });
    let (before, after) = order.split_at(first.min(order.len()));
    // SAFETY: the caller's promise.
    let _ = unsafe { run(world, before, refuse) };
    if let Some(program) = program {
        let array = program.dynamic.as_ref().and_then(|dynamic| dynamic.preinit_array);
        // SAFETY: the caller's promise.
        unsafe { run_array(world, program, array, refuse) };
    }
    // SAFETY: the caller's promise.
    let _ = unsafe { run(world, after, refuse) };
}

/// Another thread could not bring an object up.
#[derive(Debug)]
pub struct NotBroughtUp(pub ObjectIndex);

/// Runs the initialisers of these objects in order, each once, and waits for those that another thread is running.
///
/// # Safety
/// The objects must be relocated, or be brought up by other threads.
pub unsafe fn run(world: &World, order: &[ObjectIndex], refuse: Refuse) -> Result<(), NotBroughtUp> {
    for &index in order {
        let mut turn = writer::write(world, |state| begin(world, state, index));
        while let Turn::Other(word, seen) = turn {
            let reached = world.waiting.wait(word, seen, |progress| matches!(progress, BRINGING_UP | INITIALISING));
            threads::waits_for(core::ptr::null_mut());
            turn = match reached {
                FAILED => return Err(NotBroughtUp(index)),
                // Brought up for whoever comes first.
                NEW => writer::write(world, |state| begin(world, state, index)),
                _ => Turn::Done,
            };
        }
        match turn {
            Turn::Mine(object, handle) => {
                if object.role == Role::Library {
                    // SAFETY: the caller's promise.
                    unsafe { run_object(world, object, refuse) };
                }
                if let Some(word) = progress(handle) {
                    world.waiting.tell(word, READY);
                }
            }
            Turn::Other(..) | Turn::Done => {}
        }
    }
    Ok(())
}

enum Turn {
    Mine(&'static Object, *mut Handle),
    Other(&'static AtomicU32, u32),
    Done,
}

/// Whose turn it is to initialise an object. Counted before it runs: an initialiser that ends the process is finalised
/// like the others.
fn begin(world: &World, state: &mut State, index: ObjectIndex) -> Turn {
    let handle = state.handle(index);
    let (Some(object), Some(word)) = (state.objects.get(index), progress(handle)) else { return Turn::Done };
    let seen = word.load(Ordering::Acquire);
    if seen == NEW || seen == BRINGING_UP && is_mine(handle) {
        set_owner(handle);
        word.store(INITIALISING, Ordering::Release);
        // Without memory for the record its finalisers will not run.
        let _ = rtld_link::fallible::try_push(&mut state.initialised, index);
        return Turn::Mine(object, handle);
    }
    let foreign = matches!(seen, BRINGING_UP | INITIALISING) && !is_mine(handle);
    if !foreign || index < state.first_later || waits_for_me(world, handle) {
        return Turn::Done;
    }
    threads::waits_for(handle);
    Turn::Other(word, seen)
}

/// On whose behalf code at an address calls. A constructor or destructor that ends in a tail call has left its frame: the call
/// comes from where the loader called it, and stands for the object that the thread is at.
pub fn caller_of(world: &World, address: usize) -> usize {
    let is_ours = threads::read(world, |snapshot| {
        let object = snapshot.object_at(address).and_then(|index| snapshot.objects.get(index));
        object.is_some_and(|object| object.role == Role::Ourselves)
    });
    if !is_ours {
        return address;
    }
    let start = writer::write(world, |state| {
        let is_at = |handle: *mut Handle| {
            let runs = |word: &AtomicU32| matches!(word.load(Ordering::Acquire), INITIALISING | FINALISING);
            progress(handle).is_some_and(runs) && is_mine(handle)
        };
        let begun = state.initialised.iter().rev().copied().find(|&index| is_at(state.handle(index)));
        // What is finalised has left that list.
        let mut others = state.objects.iter().map(|(index, _)| index);
        let index = begun.or_else(|| others.find(|&index| is_at(state.handle(index))))?;
        state.objects.get(index).map(|object| object.mapping.start)
    });
    start.unwrap_or(address)
}

/// Whether the thread that initialises an object waits for the calling thread, be it through others. Under the writer
/// lock, where waits begin. What a thread waits for stays loaded: the thread has it open.
fn waits_for_me(world: &World, mut handle: *mut Handle) -> bool {
    while let Some(word) = progress(handle) {
        if !matches!(word.load(Ordering::Acquire), BRINGING_UP | INITIALISING) {
            return false;
        }
        // SAFETY: as progress().
        let owner = unsafe { (*handle).owner.load(Ordering::Acquire) };
        if owner == me() {
            return true;
        }
        handle = threads::waited_for(world, owner);
    }
    false
}

unsafe fn run_object(world: &World, object: &Object, refuse: Refuse) {
    let Some(dynamic) = &object.dynamic else { return };
    if let Some(init) = dynamic.init {
        let Arguments { count, values, environment } = world.process.arguments;
        // SAFETY: digestion checked that DT_INIT is in an executable segment.
        unsafe { call::initialiser(object.address(init), count, values, environment) };
    }
    // SAFETY: the caller's promise.
    unsafe { run_array(world, object, dynamic.init_array, refuse) };
}

unsafe fn run_array(world: &World, object: &Object, array: Option<Range>, refuse: Refuse) {
    let Arguments { count, values, environment } = world.process.arguments;
    let Some(array) = array else { return };
    let Some(functions) = object.image().table::<u64>(array.start, array.size / 8) else { return };
    for function in functions.iter().map(|function| function as usize) {
        if !NO_FUNCTIONS.contains(&function) {
            let function = checked(world, object, function, refuse);
            // SAFETY: relocation wrote the address of the object's function there, and it is code.
            unsafe { call::initialiser(function, count, values, environment) };
        }
    }
}

/// Runs the finalisers of one object.
///
/// # Safety
/// The object must have been initialised and stay mapped.
pub unsafe fn finalise(world: &World, object: &Object, refuse: Refuse) {
    if !matches!(object.role, Role::Library | Role::Program) {
        return;
    }
    let Some(dynamic) = &object.dynamic else { return };
    let array = dynamic.fini_array.and_then(|array| object.image().table::<u64>(array.start, array.size / 8));
    let functions = array.unwrap_or_default();
    for position in (0..functions.len()).rev() {
        let function = functions.get(position).unwrap_or(0) as usize;
        if !NO_FUNCTIONS.contains(&function) {
            let function = checked(world, object, function, refuse);
            // SAFETY: relocation wrote the address of the object's function there, and it is code.
            unsafe { call::finaliser(function) };
        }
    }
    if let Some(fini) = dynamic.fini {
        // SAFETY: digestion checked that DT_FINI is in an executable segment.
        unsafe { call::finaliser(object.address(fini)) };
    }
}

/// Runs the finalisers of everything that was initialised, in reverse order, each once, whoever calls.
pub fn run_finalisers(world: &World, refuse: Refuse) {
    let next = |state: &mut State| {
        let index = state.initialised.pop()?;
        let handle = state.handle(index);
        if let Some(word) = progress(handle) {
            word.store(FINALISING, Ordering::Release);
        }
        Some(state.objects.get(index))
    };
    while let Some(object) = writer::write(world, next) {
        if let Some(object) = object {
            // SAFETY: it was initialised; objects stay mapped while they are finalised.
            unsafe { finalise(world, object, refuse) };
        }
    }
}
