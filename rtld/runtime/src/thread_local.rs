//! Thread-local storage of running threads: a thread's vector and static blocks, and the address of a variable.
//!
//! The vector has glibc's form (rtld_clib::dtv) and lies in the loader's own memory; nothing here calls the program's
//! malloc.

use crate::world::World;
use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use rtld_clib::dtv::{Dtv, UNALLOCATED};
use rtld_clib::region::Region;
use rtld_sys::thread;

/// Room for modules that are loaded after a thread was made, as glibc's DTV_SURPLUS.
const SPARE_MODULES: usize = 14;
/// The word of the thread control block that holds the vector (psABI).
const VECTOR: usize = 8;

/// A reference to a thread-local variable, as compilers lay it out for `__tls_get_addr`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// Module id.
    pub module: usize,
    /// Offset in the module's block.
    pub offset: usize,
}

/// The vector of the thread whose control block is at `control`.
///
/// # Safety
/// `control` must be a control block that `attach` was called for.
unsafe fn vector_of(control: usize) -> Option<Dtv> {
    let word = core::ptr::with_exposed_provenance::<usize>(control.wrapping_add(VECTOR));
    // SAFETY: the control block holds at least two words.
    let address = unsafe { word.read() };
    if address == 0 {
        return None;
    }
    // SAFETY: attach stored the address of a vector that new() made.
    unsafe { Dtv::at(address) }.ok()
}

fn vector_layout(capacity: usize) -> Option<Layout> {
    Layout::from_size_align(Dtv::size_for(capacity)?, 16).ok()
}

/// Gives a thread its vector: capacity for all modules and a few more, everything unallocated.
///
/// # Safety
/// `control` must be writable memory for a control block of a thread that does not run yet.
pub unsafe fn attach(world: &World, control: usize) -> Option<()> {
    let layout = vector_layout(world.tls.modules().len().checked_add(SPARE_MODULES)?)?;
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        return None;
    }
    // SAFETY: fresh memory of this size, known to nobody else.
    let region = unsafe { Region::new(memory.expose_provenance(), layout.size()) };
    let vector = Dtv::new(region, GENERATION).ok()?;
    let word = core::ptr::with_exposed_provenance_mut::<usize>(control.wrapping_add(VECTOR));
    // SAFETY: the caller's promise.
    unsafe { word.write(vector.address()) };
    Some(())
}

/// The generation of the start-up modules.
pub const GENERATION: usize = 1;

/// Fills a thread's static blocks and points its vector at them. Called again when glibc uses a stack again.
///
/// # Safety
/// `control` must be the control block of a thread that does not run yet, above static blocks of this world's plan, and
/// its vector must be attached.
pub unsafe fn initialise(world: &World, control: usize) -> Option<()> {
    // SAFETY: the caller attached the vector.
    let vector = unsafe { vector_of(control) }?;
    vector.set_generation(GENERATION).ok()?;
    for module in 1..=vector.capacity() {
        vector.set(module, UNALLOCATED).ok()?;
    }
    for (position, module) in world.tls.modules().iter().enumerate() {
        vector.set(position + 1, control.wrapping_sub(module.offset)).ok()?;
        // SAFETY: the block lies below the control block by the plan.
        unsafe { module.initialise(control) };
    }
    // SAFETY: the plan placed the loader's own area below the control block too.
    unsafe { clear_own(world, control) };
    Some(())
}

/// Size and alignment of the loader's own area in each thread: one cache line.
pub const OWN: (usize, usize) = (64, 64);

unsafe fn clear_own(world: &World, control: usize) {
    let area = core::ptr::with_exposed_provenance_mut::<u8>(control.wrapping_sub(world.tls.own));
    // SAFETY: the caller's promise.
    unsafe { area.write_bytes(0, OWN.0) };
}

/// Bytes of static TLS and thread descriptor together, which glibc takes out of each thread's stack.
pub fn static_size(world: &World) -> usize {
    world.tls.size.saturating_add(world.descriptor_size)
}

fn block_layout(world: &World) -> Option<Layout> {
    Layout::from_size_align(static_size(world).checked_add(world.tls.alignment)?, world.tls.alignment).ok()
}

/// Memory for static blocks and a descriptor; gives the address of the control block.
pub fn allocate_block(world: &World) -> Option<usize> {
    let layout = block_layout(world)?;
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        return None;
    }
    // The size below the control block is a multiple of the alignment, so the control block is aligned too.
    let control = memory.expose_provenance().wrapping_add(world.tls.size);
    for word in [0, 2] {
        let place = core::ptr::with_exposed_provenance_mut::<usize>(control).wrapping_add(word);
        // SAFETY: the first words of the descriptor, inside the fresh memory.
        unsafe { place.write(control) };
    }
    Some(control)
}

/// Frees what `attach`, and with `block` what `allocate_block`, made for a thread.
///
/// # Safety
/// The thread must have ended, and `control` must be its control block.
pub unsafe fn release(world: &World, control: usize, block: bool) {
    // SAFETY: the caller's promise.
    if let Some(vector) = unsafe { vector_of(control) }
        && let Some(layout) = vector_layout(vector.capacity())
    {
        let memory = core::ptr::with_exposed_provenance_mut::<u8>(vector.address().wrapping_sub(16));
        // SAFETY: allocated by attach with this layout, and the thread that used it has ended.
        unsafe { dealloc(memory, layout) };
        let word = core::ptr::with_exposed_provenance_mut::<usize>(control.wrapping_add(VECTOR));
        // SAFETY: the control block is still there.
        unsafe { word.write(0) };
    }
    if block && let Some(layout) = block_layout(world) {
        let memory = core::ptr::with_exposed_provenance_mut::<u8>(control.wrapping_sub(world.tls.size));
        // SAFETY: allocated by allocate_block with this layout.
        unsafe { dealloc(memory, layout) };
    }
}

/// The calling thread's block of a module, if it has one.
///
/// # Safety
/// The thread pointer must be set.
pub unsafe fn block(module: usize) -> Option<usize> {
    // SAFETY: the caller's promise.
    let control = unsafe { thread::pointer() };
    // SAFETY: every thread of ours has a vector.
    let vector = unsafe { vector_of(control) }?;
    if module > vector.capacity() {
        return None;
    }
    vector.get(module).ok().filter(|&block| block != UNALLOCATED)
}

/// The address of a thread-local variable in the calling thread.
///
/// # Safety
/// The thread pointer must be set; `reference` must name a module of the process.
#[inline]
pub unsafe fn address(reference: Reference) -> Option<usize> {
    // SAFETY: the caller's promise.
    unsafe { block(reference.module) }.map(|block| block.wrapping_add(reference.offset))
}
