//! Executable stacks, as ld-linux of glibc 2.36 decides: the stack is executable if any start-up object asks for it, and an
//! object without PT_GNU_STACK asks for it.

use goblin::elf64::program_header::{PF_R, PF_W, PF_X};
use rtld_link::error::{Error, Reason};
use rtld_link::map::Pages;
use rtld_link::object::{ObjectSet, Role};
use rtld_sys::memory;

/// The permissions that stacks get (PF_*).
pub fn permissions(objects: &ObjectSet) -> u32 {
    let mut flags = PF_R | PF_W;
    for (_, object) in objects.iter() {
        if matches!(object.role, Role::Program | Role::Library) {
            flags |= object.mapping.layout.stack_flags.unwrap_or(PF_X) & PF_X;
        }
    }
    flags
}

/// Makes the main thread's stack executable if it must be. The kernel has done so if the program asked for it and names
/// us as its interpreter.
pub fn apply(objects: &ObjectSet, flags: u32, stack: usize, pages: Pages) -> Result<(), Error> {
    if flags & PF_X == 0 {
        return Ok(());
    }
    let protection = memory::READ | memory::WRITE | memory::EXECUTE | memory::GROWS_DOWN;
    // SAFETY: only adds a permission to the stack's pages.
    let result = unsafe { memory::protect(pages.down(stack), pages.size(), protection) };
    result.map_err(|error| {
        let asking = objects.iter().find(|(_, object)| {
            matches!(object.role, Role::Program | Role::Library)
                && object.mapping.layout.stack_flags.unwrap_or(PF_X) & PF_X != 0
        });
        Reason::ExecutableStack(error).of(asking.map_or(b"", |(_, object)| object.path.as_bytes()))
    })
}
