//! Executable stacks, as ld-linux of glibc 2.36 decides.
//!
//! The stacks of new threads are executable if any start-up object asks for it; an object without PT_GNU_STACK asks for
//! it. The main thread's stack is the kernel's work, by the program's PT_GNU_STACK; it is changed only where a library
//! asks for more than the program, and where the kernel could not look because we were started directly.

use crate::program::WayIn;
use goblin::elf64::program_header::{PF_R, PF_W, PF_X};
use rtld_link::error::{Error, Reason};
use rtld_link::map::Pages;
use rtld_link::object::{Object, ObjectSet, Role};
use rtld_sys::memory;

/// What an object asks for (PF_*).
fn wish(object: &Object) -> u32 {
    object.mapping.layout.stack_flags.unwrap_or(PF_R | PF_W | PF_X)
}

/// Whether the object has a say.
fn counts(object: &Object) -> bool {
    matches!(object.role, Role::Program | Role::Library)
}

/// The permissions that the stacks of new threads get (PF_*).
pub fn permissions(objects: &ObjectSet) -> u32 {
    let asked = objects.iter().filter(|(_, object)| counts(object));
    asked.fold(PF_R | PF_W, |flags, (_, object)| flags | wish(object) & PF_X)
}

/// Makes the main thread's stack executable if it must be.
pub fn apply(objects: &ObjectSet, way: WayIn, stack: usize, pages: Pages) -> Result<(), Error> {
    let asking =
        objects.iter().map(|(_, object)| object).filter(|object| counts(object)).find(|object| match object.role {
            Role::Program => way == WayIn::Direct && object.mapping.layout.stack_flags.unwrap_or(0) & PF_X != 0,
            _ => wish(object) & PF_X != 0,
        });
    let program_has_it = objects.iter().any(|(_, object)| object.role == Role::Program && wish(object) & PF_X != 0);
    let Some(object) = asking.filter(|object| object.role == Role::Program || !program_has_it) else { return Ok(()) };
    let protection = memory::READ | memory::WRITE | memory::EXECUTE | memory::GROWS_DOWN;
    // SAFETY: only adds a permission to the stack's pages.
    let result = unsafe { memory::protect(pages.down(stack), pages.size(), protection) };
    result.map_err(|error| Reason::ExecutableStack(error).of(object.path.as_bytes()))
}
