//! The block of a dynamic thread-local module for one thread: its memory and its initial image. Owns the layout around
//! it; who has which block is `thread_local`'s.
//!
//! Leak checkers scan a block for pointers only if they find out where it begins and ends. LeakSanitizer asks its own
//! malloc, which the loader never calls, or takes a block that begins 16 bytes into a page for one in glibc 2.19's
//! form, with size and start in front of it. So that is the form where LeakSanitizer is in the process: otherwise it
//! would report as lost whatever only a plug-in's thread-local variable points to. (LLVM's does so all the same since
//! release 18, which asks its malloc only.)

use crate::world::Snapshot;
use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use rtld_link::lookup::{Purpose, Reference};
use rtld_link::object::ObjectIndex;
use rtld_link::static_tls::Module;

/// What LeakSanitizer takes for the size of a page, whatever it is.
const PAGE: usize = 4096;
/// Exported by every runtime that has LeakSanitizer in it.
const LEAK_CHECKER: &[u8] = b"__lsan_do_leak_check";

/// At the start of an allocation: how it was made.
#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    size: usize,
    /// The allocation's alignment; or its start, which means a page's alignment, in the form for LeakSanitizer.
    alignment_or_start: usize,
}

/// A block for a thread.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// What `free` takes.
    pub allocation: usize,
    /// Where the module's variables begin.
    pub start: usize,
}

/// Whether the process checks for leaks: its runtime is among the objects that every reference finds.
pub fn checks_leaks(snapshot: &Snapshot) -> bool {
    let reference = Reference::to(LEAK_CHECKER, Purpose::Call);
    snapshot.resolver().find(ObjectIndex(0), &reference).is_some()
}

/// Allocates and fills a block; `for_leak_checker` as `checks_leaks` says. None without memory.
pub fn make(module: &Module, for_leak_checker: bool) -> Option<Block> {
    let wanted = (module.segment.align as usize).max(1);
    let misalignment = module.segment.vaddr as usize & (wanted - 1);
    let as_glibc = for_leak_checker && wanted <= size_of::<Header>() && misalignment == 0;
    let alignment = if as_glibc { PAGE } else { wanted.max(size_of::<Header>()) };
    let room = if as_glibc { size_of::<Header>() } else { alignment };
    let size = room.checked_add(misalignment)?.checked_add(module.segment.memsz as usize)?;
    let layout = Layout::from_size_align(size, alignment).ok()?;
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        return None;
    }
    let allocation = memory.expose_provenance();
    let header = Header { size, alignment_or_start: if as_glibc { allocation } else { alignment } };
    // SAFETY: the memory begins with room for the header, suitably aligned.
    unsafe { memory.cast::<Header>().write(header) };
    let start = allocation.wrapping_add(room).wrapping_add(misalignment);
    // SAFETY: the block is the rest of the fresh memory; the image is mapped as long as the snapshot is read.
    unsafe { module.fill(start) };
    Some(Block { allocation, start })
}

/// Gives a block's memory back.
///
/// # Safety
/// `allocation` is that of a block that `make` made, and nobody uses the block any more.
pub unsafe fn free(allocation: usize) {
    let memory = core::ptr::with_exposed_provenance_mut::<u8>(allocation);
    // SAFETY: make put the header there (the caller's promise).
    let header = unsafe { memory.cast::<Header>().read() };
    let alignment = if header.alignment_or_start == allocation { PAGE } else { header.alignment_or_start };
    if let Ok(layout) = Layout::from_size_align(header.size, alignment) {
        // SAFETY: allocated by make with this layout.
        unsafe { dealloc(memory, layout) };
    }
}
