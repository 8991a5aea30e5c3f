//! Protections that change around relocation: text that relocations write, and data that is constant afterwards.
//! Nothing is ever writable and executable at once.

use crate::error::{Error, Reason};
use crate::map::{self, Pages};
use crate::object::Object;
use goblin::elf64::program_header::PF_W;
use rtld_elf::segments;
use rtld_sys::memory;

/// Makes the segments that are not writable so, without execution, for the time of their relocation.
pub fn open_text(object: &Object, pages: Pages) -> Result<(), Reason> {
    protect_text(object, pages, |_| memory::READ | memory::WRITE)
}

/// Gives the segments the protection that the file asks for.
pub fn close_text(object: &Object, pages: Pages) -> Result<(), Reason> {
    protect_text(object, pages, map::protection)
}

fn protect_text(object: &Object, pages: Pages, protection: impl Fn(u32) -> u32) -> Result<(), Reason> {
    for load in segments::loads(object.mapping.headers).filter(|load| load.p_flags & PF_W == 0) {
        let start = pages.down(object.address(load.p_vaddr));
        let end = pages.up(object.address(load.p_vaddr.wrapping_add(load.p_memsz)));
        // SAFETY: the segment is ours and none of its code runs while it is being relocated.
        unsafe { memory::protect(start, end.wrapping_sub(start), protection(load.p_flags)) }
            .map_err(Reason::TextWritable)?;
    }
    Ok(())
}

/// Takes away write access to what is constant after relocation. Only whole pages: the last bytes of a region that
/// does not end on a page stay writable, as the rest of their page must.
pub fn protect_constant(object: &Object, pages: Pages) -> Result<(), Error> {
    let Some(range) = object.mapping.layout.relro else {
        return Ok(());
    };
    let start = pages.down(object.address(range.start));
    let end = pages.down(object.address(range.end()));
    if end <= start {
        return Ok(());
    }
    // SAFETY: the object is relocated; the file promises that nothing writes there any more.
    unsafe { memory::protect(start, end - start, memory::READ) }
        .map_err(|error| Reason::Protect(error).of(object.path.as_bytes()))
}
