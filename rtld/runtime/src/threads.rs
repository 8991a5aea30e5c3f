//! The threads of the process, by their control blocks, and the sections that readers are in.
//!
//! A reader is inside a section while it uses the current snapshot. A writer that has replaced something may free it once it
//! has seen no thread inside one.

use crate::fork;
use crate::lock::Lock;
use crate::reclaim::{Reader, Readers};
use crate::world::{Handle, Snapshot, World};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use rtld_link::fallible::{OutOfMemory, try_box, try_push};
use rtld_sys::thread;
use sigblock::{callback, section, word};

/// Size and alignment of the loader's own area in each thread.
pub const OWN: (usize, usize) = sigblock::AREA;
/// Which of the state's words for us holds the thread's last error.
const ERROR: usize = 0;
/// Which one holds the object whose initialisation the thread waits for; 0 for none.
const WAITS: usize = 1;

/// How many threads a block of the list has room for.
const ROOM: usize = 31;

/// Part of the list of threads: 0 where there is none.
struct Block {
    controls: [AtomicUsize; ROOM],
    next: AtomicPtr<Block>,
}

impl Block {
    const fn new() -> Block {
        Block { controls: [const { AtomicUsize::new(0) }; ROOM], next: AtomicPtr::new(core::ptr::null_mut()) }
    }
}

/// All control blocks that have static TLS of ours. The list is whole after every store: the child of a fork that happens in
/// the middle of a change can use it.
pub struct Threads {
    lock: Lock,
    first: Block,
    /// There is, or was, a second thread.
    several: AtomicBool,
    barrier: AtomicBool,
}

impl Threads {
    pub(crate) const fn new() -> Threads {
        Threads {
            lock: Lock::new(),
            first: Block::new(),
            several: AtomicBool::new(false),
            barrier: AtomicBool::new(false),
        }
    }

    /// The places of the list.
    fn places(&self) -> impl Iterator<Item = &AtomicUsize> {
        let mut block = Some(&self.first);
        let blocks = core::iter::from_fn(move || {
            let this = block?;
            // SAFETY: null, or a block that add() leaked.
            block = unsafe { this.next.load(Ordering::Acquire).as_ref() };
            Some(this)
        });
        blocks.flat_map(|block| &block.controls)
    }

    /// The control blocks. Under the lock.
    fn controls(&self) -> impl Iterator<Item = usize> {
        self.places().map(|place| place.load(Ordering::Relaxed)).filter(|&control| control != 0)
    }

    /// Adds a thread's control block.
    pub fn add(&self, control: usize) -> Result<(), OutOfMemory> {
        if self.lock.briefly(|| self.put(control)) {
            return Ok(());
        }
        // The list is full. Somebody else may be making it longer too: then it gets longer than it must be.
        let block: *mut Block = Box::leak(try_box(Block::new())?);
        self.lock.briefly(|| {
            let mut last = &self.first;
            // SAFETY: null, or a block that this function leaked.
            while let Some(next) = unsafe { last.next.load(Ordering::Acquire).as_ref() } {
                last = next;
            }
            last.next.store(block, Ordering::Release);
            let _ = self.put(control);
        });
        Ok(())
    }

    /// Adds a control block if it is not there; false if the list is full.
    fn put(&self, control: usize) -> bool {
        let mut free = None;
        for place in self.places() {
            match place.load(Ordering::Relaxed) {
                known if known == control => return true,
                0 if free.is_none() => free = Some(place),
                _ => {}
            }
        }
        free.inspect(|place| place.store(control, Ordering::Release)).is_some()
    }

    /// Takes a control block out.
    pub fn remove(&self, control: usize) {
        let is_its = |place: &&AtomicUsize| place.load(Ordering::Relaxed) == control;
        self.lock.briefly(|| self.places().filter(is_its).for_each(|place| place.store(0, Ordering::Release)));
    }

    /// Does something short for each thread's control block.
    pub fn for_each(&self, work: impl FnMut(usize)) {
        self.lock.briefly(|| self.controls().for_each(work));
    }

    /// Whether there is, or was, a second thread.
    pub(crate) fn are_several(&self) -> bool {
        self.several.load(Ordering::Relaxed)
    }

    /// In the child of a fork only the calling thread is left. The stacks of the others may be used again: nothing stays of
    /// what waits for them, nor of their last errors, which one of them may have been replacing.
    pub(crate) fn only(&self, control: usize) {
        self.lock.free_if_left();
        self.lock.briefly(|| {
            for place in self.places() {
                let other = place.load(Ordering::Relaxed);
                if other != 0 && other != control {
                    place.store(0, Ordering::Release);
                    // SAFETY: control blocks stay mapped while they are in the list; in the child there is no such thread.
                    unsafe { sigblock::forget(other) };
                }
            }
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
    world.threads.lock.briefly(|| {
        if !world.threads.controls().any(|known| known == control) {
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
    fork::prepare(world);
    world.threads.several.store(true, Ordering::Relaxed);
    world.iterating.share();
}

/// Threads are readers by their control blocks; asked by a writer.
impl Readers for Threads {
    fn barrier(&self) -> bool {
        if self.lock.briefly(|| self.controls().nth(1).is_none()) {
            return true;
        }
        if !self.barrier.load(Ordering::Relaxed) {
            self.barrier.store(thread::register_barrier().is_ok(), Ordering::Relaxed);
        }
        // Each thread either has its raised word visible to us now, or will see what we have published.
        thread::barrier_in_all_threads().is_ok()
    }

    fn collect(&self, threads: &mut Vec<Reader>) -> Result<(), OutOfMemory> {
        self.lock.briefly(|| {
            self.controls().try_for_each(|control| {
                // SAFETY: control blocks stay mapped while they are in the list.
                let rests = unsafe { sigblock::of(control) }.rests();
                try_push(threads, Reader { control, rests })
            })
        })
    }

    fn is_outside(&self, Reader { control, rests }: Reader) -> bool {
        // SAFETY: threads of this process have thread pointers.
        if control == unsafe { thread::pointer() } {
            // It is inside the writer's section, and those around callbacks of its own, which look at no snapshot; anything
            // more is a reader that was interrupted.
            let state = sigblock::current();
            return word::count(state.word.load(Ordering::Relaxed)) == callback::raised(state) + 1;
        }
        self.lock.briefly(|| {
            if !self.controls().any(|known| known == control) {
                return true;
            }
            // SAFETY: control blocks stay mapped while they are in the list.
            let state = unsafe { sigblock::of(control) };
            !word::is_raised(&state.word) || state.rests() != rests
        })
    }
}
