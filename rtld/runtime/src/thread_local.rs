//! Thread-local storage of running threads: a thread's vector and blocks, and the address of a variable.
//!
//! The vector has glibc's form (rtld_clib::dtv); behind it, in the same memory, is our own account of the blocks that
//! were allocated for dynamic modules. All memory is the loader's own; nothing here calls the program's malloc. A thread
//! changes only its own vector.

use crate::thread_block;
use crate::threads;
use crate::world::{Snapshot, World};
use alloc::alloc::{alloc_zeroed, dealloc};
use core::alloc::Layout;
use core::sync::atomic::Ordering;
use rtld_clib::dtv::{Dtv, UNALLOCATED};
use rtld_clib::region::Region;
use rtld_link::static_tls::Module;
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
#[inline]
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

/// The memory of a vector: glibc's part, then a word for each module's own block, then one for the vector before it.
fn vector_layout(capacity: usize) -> Option<Layout> {
    let size = Dtv::size_for(capacity)?.checked_add(capacity.checked_add(1)?.checked_mul(size_of::<usize>())?)?;
    Layout::from_size_align(size, 16).ok()
}

fn make_vector(capacity: usize, generation: usize) -> Option<Dtv> {
    let layout = vector_layout(capacity)?;
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        return None;
    }
    // SAFETY: fresh memory of at least this size, known to nobody else.
    let region = unsafe { Region::new(memory.expose_provenance(), Dtv::size_for(capacity)?) };
    Dtv::new(region, generation).ok()
}

/// Our word for a module's block in a vector of ours: null, or what the block was allocated as.
fn account(vector: Dtv, module: usize) -> Option<*mut usize> {
    if module == 0 || module > vector.capacity() {
        return None;
    }
    word_behind(vector, module - 1)
}

/// Our word for the vector that this one took the place of, as it is in the thread's control block; 0 for none.
fn previous(vector: Dtv) -> Option<*mut usize> {
    word_behind(vector, vector.capacity())
}

/// One of our words behind glibc's part.
fn word_behind(vector: Dtv, position: usize) -> Option<*mut usize> {
    let start = vector.address().wrapping_sub(16).wrapping_add(Dtv::size_for(vector.capacity())?);
    Some(core::ptr::with_exposed_provenance_mut::<usize>(start).wrapping_add(position))
}

/// Frees a vector, and those before it.
fn free_vector(mut vector: Dtv) {
    loop {
        // SAFETY: the word is inside the vector's memory.
        let before = previous(vector).map_or(0, |word| unsafe { word.read() });
        if let Some(layout) = vector_layout(vector.capacity()) {
            let memory = core::ptr::with_exposed_provenance_mut::<u8>(vector.address().wrapping_sub(16));
            // SAFETY: allocated by make_vector with this layout, and no longer used.
            unsafe { dealloc(memory, layout) };
        }
        if before == 0 {
            return;
        }
        // SAFETY: refresh stored the address of a vector that make_vector made.
        let Ok(next) = (unsafe { Dtv::at(before) }) else { return };
        vector = next;
    }
}

fn store_vector(control: usize, address: usize) {
    let word = core::ptr::with_exposed_provenance_mut::<usize>(control.wrapping_add(VECTOR));
    // SAFETY: the control block is ours or the calling thread's.
    unsafe { word.write(address) };
}

// --- Blocks of dynamic modules ---------------------------------------------------------------------------------------

fn free_block(vector: Dtv, module: usize) {
    let Some(word) = account(vector, module) else { return };
    // SAFETY: the word is inside the vector's memory.
    let allocation = unsafe { word.read() };
    if allocation == 0 {
        return;
    }
    // SAFETY: the same word.
    unsafe { word.write(0) };
    // SAFETY: the account said so, and now forgets it; the thread is gone or the block's module is.
    unsafe { thread_block::free(allocation) };
}

// --- Threads that begin and end --------------------------------------------------------------------------------------

/// Gives a thread its vector: capacity for all modules and a few more, everything unallocated.
///
/// # Safety
/// `control` must be writable memory for a control block of a thread that does not run yet.
pub unsafe fn attach(world: &World, snapshot: &Snapshot, control: usize) -> Option<()> {
    let vector = make_vector(snapshot.tls.slots.len().checked_add(SPARE_MODULES)?, snapshot.tls.generation)?;
    if world.threads.add(control).is_err() {
        free_vector(vector);
        return None;
    }
    store_vector(control, vector.address());
    Some(())
}

/// Fills a thread's static blocks and points its vector at them. Called again when glibc uses a stack again: what the
/// thread before it had is freed.
///
/// # Safety
/// `control` must be the control block of a thread that does not run yet, above static blocks of this world's layout,
/// and its vector must be attached.
pub unsafe fn initialise(snapshot: &Snapshot, control: usize) -> Option<()> {
    // SAFETY: the caller attached the vector.
    let vector = unsafe { vector_of(control) }?;
    for module in 1..=vector.capacity() {
        free_block(vector, module);
        vector.set(module, UNALLOCATED).ok()?;
    }
    vector.set_generation(snapshot.tls.generation).ok()?;
    for (position, slot) in snapshot.tls.slots.iter().enumerate() {
        if let Some(module) = slot.module.filter(Module::is_static) {
            if position < vector.capacity() {
                vector.set(position + 1, control.wrapping_sub(module.offset)).ok()?;
            }
            // SAFETY: the block lies below the control block by the layout.
            unsafe { module.initialise(control) };
        }
    }
    Some(())
}

/// Bytes of static TLS and thread descriptor together, which glibc takes out of each thread's stack.
pub fn static_size(world: &World) -> usize {
    world.process.static_tls_size.saturating_add(world.process.descriptor_size)
}

fn block_layout(world: &World) -> Option<Layout> {
    let alignment = world.process.static_tls_alignment;
    Layout::from_size_align(static_size(world).checked_add(alignment)?, alignment).ok()
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
    let control = memory.expose_provenance().wrapping_add(world.process.static_tls_size);
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
    world.threads.remove(control);
    // SAFETY: the caller's promise.
    unsafe { sigblock::clear(control) };
    // SAFETY: the caller's promise.
    if let Some(vector) = unsafe { vector_of(control) } {
        (1..=vector.capacity()).for_each(|module| free_block(vector, module));
        free_vector(vector);
        store_vector(control, 0);
    }
    if block {
        // SAFETY: the caller's promise.
        unsafe { free_block_of(world, control) };
    }
}

/// Frees what `allocate_block` made.
///
/// # Safety
/// Nobody uses the control block any more.
unsafe fn free_block_of(world: &World, control: usize) {
    if let Some(layout) = block_layout(world) {
        let start = control.wrapping_sub(world.process.static_tls_size);
        let memory = core::ptr::with_exposed_provenance_mut::<u8>(start);
        // SAFETY: allocated by allocate_block with this layout.
        unsafe { dealloc(memory, layout) };
    }
}

/// Fills the blocks of a module that has just become static, in all threads.
pub fn fill_everywhere(world: &World, module: &Module) {
    world.threads.for_each(|control| {
        // SAFETY: the module's place is free in every thread, and none of its code has run.
        unsafe { module.initialise(control) };
    });
}

// --- Variables -------------------------------------------------------------------------------------------------------

/// The calling thread's block of a module, if it has one.
pub fn block(snapshot: &Snapshot, module: usize) -> Option<usize> {
    // SAFETY: threads of this process have thread pointers.
    let control = unsafe { thread::pointer() };
    let slot = snapshot.tls.slot(module)?;
    if let Some(module) = slot.module.filter(Module::is_static) {
        return Some(control.wrapping_sub(module.offset));
    }
    // SAFETY: every thread of ours has a vector.
    let vector = unsafe { vector_of(control) }?;
    let current = module <= vector.capacity() && vector.generation().ok()? >= slot.generation;
    current.then(|| vector.get(module).ok()).flatten().filter(|&block| block != UNALLOCATED)
}

/// The address of a thread-local variable in the calling thread. None without memory.
#[inline]
pub fn address(world: &World, reference: Reference) -> Option<usize> {
    // SAFETY: threads of this process have thread pointers.
    let control = unsafe { thread::pointer() };
    // SAFETY: every thread of ours has a vector.
    let vector = unsafe { vector_of(control) }?;
    if vector.generation() == Ok(world.generation.load(Ordering::Acquire))
        && let Ok(block) = vector.get(reference.module)
        && block != UNALLOCATED
    {
        return Some(block.wrapping_add(reference.offset));
    }
    address_slowly(world, control, reference)
}

#[cold]
fn address_slowly(world: &World, control: usize, reference: Reference) -> Option<usize> {
    threads::read(world, |snapshot| {
        let vector = refresh(snapshot, control)?;
        let module = snapshot.tls.slot(reference.module)?.module?;
        let known = vector.get(reference.module).ok()?;
        let block = if known != UNALLOCATED {
            known
        } else if module.is_static() {
            control.wrapping_sub(module.offset)
        } else {
            let block = thread_block::make(&module, thread_block::checks_leaks(snapshot))?;
            let word = account(vector, reference.module)?;
            // SAFETY: the word is inside the vector's memory, which only this thread changes.
            unsafe { word.write(block.allocation) };
            block.start
        };
        vector.set(reference.module, block).ok()?;
        Some(block.wrapping_add(reference.offset))
    })
}

/// Brings the calling thread's vector up to the snapshot: room for all modules, and nothing left of modules that are
/// gone.
fn refresh(snapshot: &Snapshot, control: usize) -> Option<Dtv> {
    // SAFETY: control is the calling thread's, which has a vector.
    let mut vector = unsafe { vector_of(control) }?;
    let seen = vector.generation().ok()?;
    let needed = snapshot.tls.slots.len();
    if needed > vector.capacity() {
        let larger = make_vector(needed.checked_add(SPARE_MODULES)?, seen)?;
        for module in 1..=vector.capacity() {
            larger.set(module, vector.get(module).ok()?).ok()?;
            let (from, to) = (account(vector, module)?, account(larger, module)?);
            // SAFETY: words of the two vectors' memory.
            unsafe { to.write(from.read()) };
        }
        // A handler may be here while its thread is about to read the vector: that one stays until the thread ends.
        let word = previous(larger)?;
        // SAFETY: the word is inside the fresh vector's memory.
        unsafe { word.write(vector.address()) };
        store_vector(control, larger.address());
        vector = larger;
    }
    if seen != snapshot.tls.generation {
        for (position, slot) in snapshot.tls.slots.iter().enumerate() {
            if slot.generation > seen {
                free_block(vector, position + 1);
                vector.set(position + 1, UNALLOCATED).ok()?;
            }
        }
        vector.set_generation(snapshot.tls.generation).ok()?;
    }
    Some(vector)
}
