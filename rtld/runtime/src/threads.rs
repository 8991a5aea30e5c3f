//! The threads of the process, by their control blocks, and the sections that readers are in.
//!
//! A reader is inside a section while it uses the current snapshot. A writer that has replaced something may free it once it
//! has seen no thread inside one.

use crate::lock::Lock;
use crate::world::{Handle, Snapshot, World};
use crate::writer;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use rtld_link::fallible::{OutOfMemory, try_push};
use rtld_sys::thread;
use sigblock::{callback, section, word};

/// Size and alignment of the loader's own area in each thread.
pub const OWN: (usize, usize) = sigblock::AREA;
/// Which of the state's words for us holds the thread's last error.
const ERROR: usize = 0;
/// Which one holds the object whose initialisation the thread waits for; 0 for none.
const WAITS: usize = 1;

/// All control blocks that have static TLS of ours.
pub struct Threads {
    lock: Lock,
    controls: UnsafeCell<Vec<usize>>,
    barrier: AtomicBool,
}

// SAFETY: the list is only touched by the holder of the lock.
unsafe impl Sync for Threads {}

impl Threads {
    pub(crate) const fn new() -> Threads {
        Threads { lock: Lock::new(), controls: UnsafeCell::new(Vec::new()), barrier: AtomicBool::new(false) }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Vec<usize>) -> R) -> R {
        // SAFETY: we hold the lock, and nothing that runs under it comes back here.
        self.lock.briefly(|| work(unsafe { &mut *self.controls.get() }))
    }

    /// Adds a thread's control block.
    pub fn add(&self, control: usize) -> Result<(), OutOfMemory> {
        self.with(|controls| if controls.contains(&control) { Ok(()) } else { try_push(controls, control) })
    }

    /// Takes a control block out.
    pub fn remove(&self, control: usize) {
        self.with(|controls| controls.retain(|&known| known != control));
    }

    /// Does something short for each thread's control block.
    pub fn for_each(&self, mut work: impl FnMut(usize)) {
        self.with(|controls| controls.iter().for_each(|&control| work(control)));
    }

    /// Keeps the list as it is until [`Threads::let_go`].
    pub(crate) fn keep(&self) {
        self.lock.keep();
    }

    /// Ends a keep.
    pub(crate) fn let_go(&self) {
        self.lock.let_go();
    }

    /// In the child of a fork that was not expected only the calling thread is left; the lock may have been held by one that
    /// is not.
    pub(crate) fn reset(&self) {
        self.lock.reset();
    }

    /// In the child of a fork only the calling thread is left. The stacks of the others may be used again: nothing stays of
    /// what waits for them, nor of their last errors, which one of them may have been replacing.
    pub(crate) fn only(&self, control: usize) {
        self.with(|controls| {
            for &other in controls.iter().filter(|&&known| known != control) {
                // SAFETY: control blocks stay mapped while they are in the list; in the child there is no such thread.
                unsafe { sigblock::forget(other) };
            }
            controls.retain(|&known| known == control);
        });
    }
}

/// Gives the main thread its state; from here on sections are there, and heap and locks use them.
///
/// # Safety
/// `control` must be a control block above static TLS of this world, and the thread pointer must be set to it before anything
/// else is done.
pub unsafe fn prepare_first(world: &World, control: usize) {
    sigblock::set_area(world.process.own_area);
    // SAFETY: the caller's promise.
    unsafe { sigblock::prepare(control) };
}

/// A word of ours in the state of the thread with this control block.
fn own(control: usize, which: usize) -> &'static AtomicUsize {
    // SAFETY: callers name threads that are in the list, or themselves.
    let [error, waits] = unsafe { &sigblock::of(control).owner };
    if which == ERROR { error } else { waits }
}

/// The calling thread's word for its last error.
pub(crate) fn error_slot() -> &'static AtomicUsize {
    // SAFETY: threads of this process have thread pointers.
    error_slot_of(unsafe { thread::pointer() })
}

/// A thread's word for its last error.
pub(crate) fn error_slot_of(control: usize) -> &'static AtomicUsize {
    own(control, ERROR)
}

/// Notes what the calling thread waits for; null for nothing.
pub(crate) fn waits_for(handle: *mut Handle) {
    // SAFETY: threads of this process have thread pointers.
    own(unsafe { thread::pointer() }, WAITS).store(handle.expose_provenance(), Ordering::Release);
}

/// What the thread with this control block waits for; null for nothing, or if there is no such thread any more.
pub(crate) fn waited_for(world: &World, control: usize) -> *mut Handle {
    world.threads.with(|controls| {
        if !controls.contains(&control) {
            return core::ptr::null_mut();
        }
        core::ptr::with_exposed_provenance_mut(own(control, WAITS).load(Ordering::Acquire))
    })
}

/// Reads the current snapshot inside a section. Nothing in `work` may wait for another thread, but for a short lock, or call
/// foreign code.
#[inline]
pub fn read<R>(world: &World, work: impl FnOnce(&Snapshot) -> R) -> R {
    let state = sigblock::current();
    section::enter(state);
    // SAFETY: inside the section.
    let result = work(unsafe { world.snapshot() });
    section::leave(state);
    result
}

/// Before there is another thread. If a callback begins it, its section ends here: the new thread gets the mask of signals of
/// the calling one.
pub fn before_another(world: &World) {
    callback::suspend(sigblock::current());
    writer::prepare(world);
    world.iterating.share();
}

/// Whether nobody reads what was published before now. Called by a writer: the calling thread is inside the writer's section,
/// and those around callbacks of its own, which look at no snapshot; anything more is a reader that was interrupted.
pub(crate) fn nobody_reads(world: &World) -> bool {
    let state = sigblock::current();
    if word::count(state.word.load(Ordering::Relaxed)) != callback::raised(state) + 1 {
        return false;
    }
    let threads = &world.threads;
    let alone = threads.with(|controls| controls.len() < 2);
    if alone {
        return true;
    }
    if !threads.barrier.load(Ordering::Relaxed) {
        threads.barrier.store(thread::register_barrier().is_ok(), Ordering::Relaxed);
    }
    // Each thread either has its raised word visible to us now, or will see what we have published.
    if thread::barrier_in_all_threads().is_err() {
        return false;
    }
    // SAFETY: threads of this process have thread pointers.
    let me = unsafe { thread::pointer() };
    threads.with(|controls| {
        let others = controls.iter().filter(|&&control| control != me);
        // SAFETY: control blocks stay mapped while they are in the list.
        others.into_iter().all(|&control| !word::is_raised(unsafe { &sigblock::of(control).word }))
    })
}
