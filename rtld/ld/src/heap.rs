//! The loader's private heap: an arena on pages from mmap, behind one short lock. The program's malloc is never called, and it
//! never sees our memory.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};
use rtld_runtime::arena::Arena;
use rtld_runtime::chunks;
use rtld_runtime::lock::Lock;
use rtld_sys::memory;

/// The first pages lie in the image, where they cost something only once they are used and no call is needed to have them.
#[repr(align(4096))]
struct FirstPages(UnsafeCell<[u8; chunks::FIRST]>);

// SAFETY: handed out once, by `map`.
unsafe impl Sync for FirstPages {}

// At the end of the data (late.ld): all before it and the first of these pages are made together.
#[unsafe(link_section = ".bss.late.a")]
static FIRST_PAGES: FirstPages = FirstPages(UnsafeCell::new([0; chunks::FIRST]));

static ARE_GIVEN: AtomicBool = AtomicBool::new(false);

/// The end of what the smallest program's start fills of them: made before anything else (`entry`).
pub fn first_end() -> usize {
    FIRST_PAGES.0.get().addr().wrapping_add(chunks::MADE)
}

struct Pages;

impl chunks::Pages for Pages {
    fn map(&self, size: usize) -> Option<usize> {
        if size == chunks::FIRST && !ARE_GIVEN.swap(true, Ordering::Relaxed) {
            return Some(FIRST_PAGES.0.get().expose_provenance());
        }
        memory::map_anonymous(size, memory::READ | memory::WRITE).ok()
    }

    fn prepare(&self, start: usize, size: usize) {
        // `entry` has made those of the image.
        if start != FIRST_PAGES.0.get().addr() {
            memory::prepare_to_write(start, size);
        }
    }

    unsafe fn unmap(&self, start: usize, size: usize) {
        // SAFETY: the caller's promise.
        let _ = unsafe { memory::unmap(start, size) };
    }

    unsafe fn clear(&self, start: usize, size: usize) {
        // SAFETY: the caller's promise.
        if unsafe { memory::discard(start, size) }.is_err() {
            // Locked pages (mlockall) stay.
            // SAFETY: as above; the pages are writable.
            unsafe { core::ptr::with_exposed_provenance_mut::<u8>(start).write_bytes(0, size) };
        }
    }
}

struct Heap {
    lock: Lock,
    arena: Arena<Pages>,
}

#[global_allocator]
static HEAP: Heap = Heap { lock: Lock::new(), arena: Arena::new(Pages) };

/// Before there is a second thread: in the child of a fork nobody is left who had the lock. Memory comes and goes from now on.
pub fn prepare() {
    HEAP.lock.free_if_left();
    settle();
}

/// The start is over.
pub fn stop_making() {
    HEAP.arena.stop_making();
}

/// Memory comes and goes from now on.
pub fn settle() {
    HEAP.arena.settle();
}

impl Heap {
    fn allocate(&self, layout: Layout) -> (*mut u8, bool) {
        let memory = self.lock.briefly(|| self.arena.allocate(layout));
        let (address, is_zero) = memory.unwrap_or((0, false));
        (core::ptr::with_exposed_provenance_mut(address), is_zero)
    }
}

// Not inline: this is called from everywhere, and every page of the image is resident in every process.
// SAFETY: the arena gives memory of the layout that is asked for to one caller at a time, and the lock serialises its calls.
unsafe impl GlobalAlloc for Heap {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.allocate(layout).0
    }

    #[inline(never)]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller allocated it here with this layout.
        self.lock.briefly(|| unsafe { self.arena.free(pointer.expose_provenance(), layout) });
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (memory, is_zero) = self.allocate(layout);
        if !is_zero && !memory.is_null() {
            // SAFETY: fresh memory of this size.
            unsafe { memory.write_bytes(0, layout.size()) };
        }
        memory
    }

    #[inline(never)]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self.arena.fits(layout, size) {
            return pointer;
        }
        let Ok(wanted) = Layout::from_size_align(size, layout.align()) else { return core::ptr::null_mut() };
        let (memory, _) = self.allocate(wanted);
        if !memory.is_null() {
            // SAFETY: both are as long as the shorter one, and the new one is fresh.
            unsafe { memory.copy_from_nonoverlapping(pointer, layout.size().min(size)) };
            // SAFETY: the caller's promise; what was in it has been copied.
            unsafe { self.dealloc(pointer, layout) };
        }
        memory
    }
}
