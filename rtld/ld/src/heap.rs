//! The loader's private heap: dlmalloc on pages from mmap, behind one short lock. The program's malloc is never called, and it
//! never sees our memory.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use dlmalloc::{Allocator, Dlmalloc};
use rtld_runtime::lock::Lock;
use rtld_sys::memory;

struct Pages;

// SAFETY: alloc gives fresh, exclusive mappings; free gives back whole ones; nothing else is offered.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        match memory::map_anonymous(size, memory::READ | memory::WRITE) {
            Ok(address) => (core::ptr::with_exposed_provenance_mut(address), size, 0),
            Err(_) => (core::ptr::null_mut(), 0, 0),
        }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        core::ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, start: *mut u8, size: usize) -> bool {
        // SAFETY: the allocator gives back a mapping that alloc made and that it no longer uses.
        unsafe { memory::unmap(start.expose_provenance(), size) }.is_ok()
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}

struct Heap {
    lock: Lock,
    inner: UnsafeCell<Dlmalloc<Pages>>,
}

// SAFETY: inner is only touched by the holder of the lock.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap { lock: Lock::new(), inner: UnsafeCell::new(Dlmalloc::new_with_allocator(Pages)) };

impl Heap {
    fn with<R>(&self, work: impl FnOnce(&mut Dlmalloc<Pages>) -> R) -> R {
        // SAFETY: we hold the lock, and nothing that runs under it comes back here.
        self.lock.briefly(|| work(unsafe { &mut *self.inner.get() }))
    }
}

/// Keeps the heap as it is until [`let_go`], so that the child of a fork finds it whole.
pub fn keep() {
    HEAP.lock.keep();
}

/// Ends a keep, also in the child.
pub fn let_go() {
    HEAP.lock.let_go();
}

// Not inline: this is called from everywhere, and every page of the image is resident in every process.
// SAFETY: dlmalloc is a correct allocator, and the lock serialises it.
unsafe impl GlobalAlloc for Heap {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and power-of-two alignment may be asked for.
        self.with(|heap| unsafe { heap.malloc(layout.size(), layout.align()) })
    }

    #[inline(never)]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller allocated it here with this layout.
        self.with(|heap| unsafe { heap.free(pointer, layout.size(), layout.align()) });
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as alloc.
        self.with(|heap| unsafe { heap.calloc(layout.size(), layout.align()) })
    }

    #[inline(never)]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller allocated it here with this layout.
        self.with(|heap| unsafe { heap.realloc(pointer, layout.size(), layout.align(), size) })
    }
}
