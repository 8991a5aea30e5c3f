//! The threads of the process, by their control blocks, and the sections that readers are in.
//!
//! A reader raises its thread's word (the first word of the loader's own area below the thread pointer) while it uses
//! the current snapshot. A writer that has replaced something may free it once it has seen every word down.

use crate::world::{Handle, Snapshot, World};
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use rtld_link::fallible::{OutOfMemory, try_push};
use rtld_sys::lock::Futex;
use rtld_sys::thread;
use sigblock::word;

/// Size and alignment of the loader's own area in each thread: one cache line.
pub const OWN: (usize, usize) = (64, 64);
/// Where in the area the thread's last error is.
const ERROR: usize = 8;
/// Where in the area the object is whose initialisation the thread waits for; null for none.
const WAITS: usize = 16;

/// All control blocks that have static TLS of ours.
pub struct Threads {
    lock: Futex,
    controls: UnsafeCell<Vec<usize>>,
    barrier: AtomicBool,
}

// SAFETY: the list is only touched by the holder of the lock.
unsafe impl Sync for Threads {}

impl Threads {
    pub(crate) const fn new() -> Threads {
        Threads { lock: Futex::new(), controls: UnsafeCell::new(Vec::new()), barrier: AtomicBool::new(false) }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Vec<usize>) -> R) -> R {
        self.lock.acquire();
        // SAFETY: we hold the lock.
        let result = work(unsafe { &mut *self.controls.get() });
        self.lock.release();
        result
    }

    /// Adds a thread's control block.
    pub fn add(&self, control: usize) -> Result<(), OutOfMemory> {
        self.with(|controls| if controls.contains(&control) { Ok(()) } else { try_push(controls, control) })
    }

    /// Takes a control block out.
    pub fn remove(&self, control: usize) {
        self.with(|controls| controls.retain(|&known| known != control));
    }

    /// Does something for each thread's control block.
    pub fn for_each(&self, mut work: impl FnMut(usize)) {
        self.with(|controls| controls.iter().for_each(|&control| work(control)));
    }

    /// Keeps the list as it is until [`Threads::let_go`].
    pub(crate) fn hold(&self) {
        self.lock.acquire();
    }

    /// Ends a hold.
    pub(crate) fn let_go(&self) {
        self.lock.release();
    }

    /// In the child of a fork only the calling thread is left; the lock may have been held by one that is not.
    pub fn only(&self, control: usize) {
        self.lock.reset();
        self.with(|controls| controls.retain(|&known| known == control));
    }
}

/// A word of the loader's own area of the thread with this control block.
fn own<T>(world: &World, control: usize, offset: usize) -> *mut T {
    core::ptr::with_exposed_provenance_mut(control.wrapping_sub(world.process.own_area).wrapping_add(offset))
}

/// Clears the own area of a thread that does not run yet.
///
/// # Safety
/// `control` must be a control block above static TLS of this world.
pub unsafe fn clear_own(world: &World, control: usize) {
    let area = own::<u8>(world, control, 0);
    // SAFETY: the area is 64 bytes of the thread's static block (the caller's promise).
    unsafe { area.write_bytes(0, OWN.0) };
}

/// The calling thread's word for its last error.
pub fn error_slot(world: &World) -> *mut usize {
    // SAFETY: threads of this process have thread pointers.
    error_slot_of(world, unsafe { thread::pointer() })
}

/// A thread's word for its last error.
pub(crate) fn error_slot_of(world: &World, control: usize) -> *mut usize {
    own(world, control, ERROR)
}

/// Notes what the calling thread waits for; null for nothing.
pub(crate) fn waits_for(world: &World, handle: *mut Handle) {
    // SAFETY: threads of this process have thread pointers.
    let word: *const AtomicPtr<Handle> = own(world, unsafe { thread::pointer() }, WAITS);
    // SAFETY: a word of the calling thread's own area.
    unsafe { (*word).store(handle, Ordering::Release) };
}

/// What the thread with this control block waits for; null for nothing, or if there is no such thread any more.
pub(crate) fn waited_for(world: &World, control: usize) -> *mut Handle {
    world.threads.with(|controls| {
        if !controls.contains(&control) {
            return core::ptr::null_mut();
        }
        let word: *const AtomicPtr<Handle> = own(world, control, WAITS);
        // SAFETY: control blocks stay mapped while they are in the list.
        unsafe { (*word).load(Ordering::Acquire) }
    })
}

/// Reads the current snapshot inside a section. Nothing in `work` may wait for another thread or call foreign code.
#[inline]
pub fn read<R>(world: &World, work: impl FnOnce(&Snapshot) -> R) -> R {
    // SAFETY: threads of this process have thread pointers.
    let control = unsafe { thread::pointer() };
    let word: *const AtomicU32 = own(world, control, 0);
    // SAFETY: the word is the calling thread's.
    unsafe { word::enter(word) };
    // SAFETY: inside the section.
    let result = work(unsafe { world.snapshot() });
    // SAFETY: raised above.
    unsafe { word::leave(word) };
    result
}

/// Whether no thread is inside a section that began before now.
pub(crate) fn nobody_reads(world: &World) -> bool {
    let threads = &world.threads;
    let alone = threads.with(|controls| controls.len() < 2);
    if !alone {
        if !threads.barrier.load(Ordering::Relaxed) {
            threads.barrier.store(thread::register_barrier().is_ok(), Ordering::Relaxed);
        }
        // Each thread either has its raised word visible to us now, or will see what we have published.
        if thread::barrier_in_all_threads().is_err() {
            return false;
        }
    }
    threads.with(|controls| {
        controls.iter().all(|&control| {
            let word: *const AtomicU32 = own(world, control, 0);
            // SAFETY: control blocks stay mapped while they are in the list.
            !word::is_raised(unsafe { &*word })
        })
    })
}
