//! Runs initialisers and finalisers. No lock is held while they run: they are the program's own code and may do anything.

use crate::call;
use crate::world::{Arguments, World};
use core::sync::atomic::Ordering;
use rtld_elf::Range;
use rtld_link::deferred::is_code;
use rtld_link::error::{Error, Reason};
use rtld_link::object::{Object, ObjectIndex, Role};

/// Values in the arrays that are no functions: null, and the end mark of old crtbegin files.
const NO_FUNCTIONS: [usize; 2] = [0, usize::MAX];

/// Stops everything because an object names a function that is none.
pub type Refuse = fn(&Error) -> !;

/// The function at an address, if it is inside executable memory; else the end.
fn checked(world: &World, object: &Object, function: usize, refuse: Refuse) -> usize {
    let holder = world.object_at(function).and_then(|index| world.objects.get(index));
    if !holder.is_some_and(|holder| is_code(holder, function)) {
        refuse(&Reason::FunctionOutside { address: function }.of(object.path.as_bytes()));
    }
    function
}

/// Runs the program's preinitialisers, then the initialisers of all libraries in order. The program's own are its
/// start code's business.
///
/// # Safety
/// All objects must be relocated and the main thread complete.
pub unsafe fn run_initialisers(world: &World, refuse: Refuse) {
    let first =
        world.init_order.iter().take_while(|&&index| rtld_link::init_order::is_first(&world.objects, index)).count();
    for position in 0..world.init_order.len() {
        if position == first
            && let Some(program) = world.objects.get(ObjectIndex(0))
        {
            let array = program.dynamic.as_ref().and_then(|dynamic| dynamic.preinit_array);
            // SAFETY: the caller's promise.
            unsafe { run_array(world, program, array, refuse) };
        }
        // Counted before it runs: an initialiser that ends the process is finalised like the others.
        world.initialised.store(position + 1, Ordering::Release);
        let object = world.init_order.get(position).and_then(|&index| world.objects.get(index));
        if let Some(object) = object.filter(|object| object.role == Role::Library) {
            // SAFETY: the caller's promise.
            unsafe { run_object(world, object, refuse) };
        }
    }
}

unsafe fn run_object(world: &World, object: &Object, refuse: Refuse) {
    let Some(dynamic) = &object.dynamic else {
        return;
    };
    if let Some(init) = dynamic.init {
        let Arguments { count, values, environment } = world.arguments;
        // SAFETY: digestion checked that DT_INIT is in an executable segment.
        unsafe { call::initialiser(object.address(init), count, values, environment) };
    }
    // SAFETY: the caller's promise.
    unsafe { run_array(world, object, dynamic.init_array, refuse) };
}

unsafe fn run_array(world: &World, object: &Object, array: Option<Range>, refuse: Refuse) {
    let Arguments { count, values, environment } = world.arguments;
    let Some(array) = array else { return };
    let Some(functions) = object.image().table::<u64>(array.start, array.size / 8) else {
        return;
    };
    for function in functions.iter().map(|function| function as usize) {
        if !NO_FUNCTIONS.contains(&function) {
            let function = checked(world, object, function, refuse);
            // SAFETY: relocation wrote the address of the object's function there, and it is code.
            unsafe { call::initialiser(function, count, values, environment) };
        }
    }
}

/// Runs the finalisers of everything that was initialised, in reverse order, each once, whoever calls.
pub fn run_finalisers(world: &World, refuse: Refuse) {
    loop {
        let take = |count: usize| count.checked_sub(1);
        let Ok(count) = world.initialised.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) else {
            return;
        };
        let object = world.init_order.get(count.wrapping_sub(1)).and_then(|&index| world.objects.get(index));
        let Some(object) = object.filter(|object| matches!(object.role, Role::Library | Role::Program)) else {
            continue;
        };
        let Some(dynamic) = &object.dynamic else {
            continue;
        };
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
}
