//! The writer's side: what is known about loaded objects beyond what readers see, and the one lock around it.
//!
//! The lock is held inside a section and waited for outside. Nobody holds it while foreign code runs, and its holder waits for
//! short locks only.
//!
//! Where there are several threads, a *spare* of the state stands beside it whenever it may be half changed: what the child
//! of a fork goes on with that happened meanwhile.

use crate::addresses::AddressMap;
use crate::fork;
use crate::fresh::{self, Fresh};
use crate::initialise;
use crate::iterate::{ProgramHeaderInfo, Visit};
use crate::lock::Lock;
use crate::pins;
use crate::reclaim::Retired;
use crate::world::{Handle, Snapshot, World};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, Ordering};
use rtld_link::fallible::{OutOfMemory, try_box, try_extend, try_push};
use rtld_link::lookup::{Closure, Scope, Scopes};
use rtld_link::object::{Object, ObjectIndex, ObjectSet};
use rtld_link::search::Search;
use rtld_link::static_tls::TlsPlan;
use rtld_sys::{memory, thread};

/// An object that was opened by itself, or that must have a scope of its own.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// The object.
    pub root: ObjectIndex,
    /// How many handles to it are open.
    pub count: u32,
    /// Its closure comes before the global scope (RTLD_DEEPBIND).
    pub deep: bool,
    /// Where its symbols are looked for, as long as it is here; none for the program, which has the global scope.
    pub closure: Option<&'static Closure>,
}

impl Opened {
    /// An object with its closure.
    pub fn new(objects: &ObjectSet, root: ObjectIndex, count: u32, deep: bool) -> Result<Opened, OutOfMemory> {
        let members = objects.closure(root)?;
        let scope = Scope::new(objects.table(), members.iter().copied())?;
        let closure: &'static Closure = Box::leak(try_box(Closure { root, members, scope })?);
        Ok(Opened { root, count, deep, closure: Some(closure) })
    }
}

/// A slot of one object leads to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bond {
    /// The object with the slot.
    pub from: ObjectIndex,
    /// The object that the slot leads to.
    pub to: ObjectIndex,
}

/// Something that a reader may still be looking at.
enum Replaced {
    Snapshot(*mut Snapshot),
    Closure(*mut Closure),
    Object { object: &'static Object, handle: *mut Handle },
}

/// What writers know.
pub struct State {
    /// All objects.
    pub objects: ObjectSet,
    /// By object: its handle.
    pub handles: Vec<*mut Handle>,
    /// Thread-local modules.
    pub tls: TlsPlan,
    /// How files are found.
    pub search: Search<'static>,
    /// The global scope's objects in order.
    pub global: Vec<ObjectIndex>,
    /// What was opened.
    pub opened: Vec<Opened>,
    /// Bindings between objects that may be unloaded.
    pub bonds: Vec<Bond>,
    /// What was initialised and not yet finalised, in order.
    pub initialised: Vec<ObjectIndex>,
    /// Objects from this index on may be unloaded.
    pub first_later: ObjectIndex,
    /// How many objects were ever loaded.
    pub adds: u64,
    /// How many were unloaded.
    pub subs: u64,
    /// The thread, by its thread pointer, that unloads what nothing needs; None if none does.
    pub unloading: Option<usize>,
    /// What was published and is not complete.
    pub(crate) fresh: Vec<&'static Fresh>,
    retired: Retired<Replaced>,
    /// The state could not be published: readers still see what was retired.
    unpublished: bool,
}

impl State {
    /// The state after start-up's loading.
    pub fn new(
        objects: ObjectSet,
        handles: Vec<*mut Handle>,
        tls: TlsPlan,
        search: Search<'static>,
        global: Vec<ObjectIndex>,
    ) -> Result<State, OutOfMemory> {
        // The program is open from the start.
        let mut opened = Vec::new();
        try_push(&mut opened, Opened { root: ObjectIndex(0), count: 1, deep: false, closure: None })?;
        let first_later = ObjectIndex(objects.bound() as u32);
        let adds = objects.table().count() as u64;
        Ok(State {
            objects,
            handles,
            tls,
            search,
            global,
            opened,
            bonds: Vec::new(),
            initialised: Vec::new(),
            first_later,
            adds,
            subs: 0,
            unloading: None,
            fresh: Vec::new(),
            retired: Retired::new(),
            unpublished: false,
        })
    }

    /// The state as it is now, to go on with where a change of this one is never finished. What was retired is not in it.
    fn spare(&self) -> Result<Box<State>, OutOfMemory> {
        let mut spare = State {
            objects: self.objects.try_clone()?,
            handles: Vec::new(),
            tls: self.tls.try_clone()?,
            search: self.search.afresh(),
            global: Vec::new(),
            opened: Vec::new(),
            bonds: Vec::new(),
            initialised: Vec::new(),
            fresh: Vec::new(),
            retired: Retired::new(),
            ..*self
        };
        try_extend(&mut spare.handles, &self.handles)?;
        try_extend(&mut spare.global, &self.global)?;
        try_extend(&mut spare.opened, &self.opened)?;
        try_extend(&mut spare.bonds, &self.bonds)?;
        try_extend(&mut spare.initialised, &self.initialised)?;
        try_extend(&mut spare.fresh, &self.fresh)?;
        try_box(spare)
    }

    /// What readers are to see.
    pub fn snapshot(&self) -> Result<Box<Snapshot>, OutOfMemory> {
        let table = self.objects.table();
        let mut closures = Vec::new();
        let mut deep = Vec::new();
        for opened in &self.opened {
            if let Some(closure) = opened.closure {
                try_push(&mut closures, closure)?;
            }
            if opened.deep {
                try_push(&mut deep, opened.root)?;
            }
        }
        let mut handles = Vec::new();
        try_extend(&mut handles, &self.handles)?;
        let mut needs = Vec::new();
        for index in (self.first_later.0..self.objects.bound() as u32).map(ObjectIndex) {
            for &needed in self.objects.entry(index).map_or(&[][..], |entry| &entry.needed) {
                try_push(&mut needs, (index, needed))?;
            }
        }
        needs.sort_unstable();
        let tls = self.tls.table()?;
        let mut visits = Vec::new();
        visits.try_reserve_exact(table.count()).map_err(|_| OutOfMemory)?;
        for (index, object) in table.iter() {
            try_push(&mut visits, self.visit(index, object, tls.id(index)))?;
        }
        try_box(Snapshot {
            objects: table.try_clone()?,
            scopes: Scopes { global: Scope::new(table, self.global.iter().copied())?, closures, deep },
            addresses: AddressMap::new(table)?,
            tls,
            handles,
            visits,
            first_later: self.first_later,
            needs,
            adds: self.adds,
            subs: self.subs,
        })
    }

    /// What callbacks are told of an object.
    fn visit(&self, index: ObjectIndex, object: &Object, module: usize) -> Visit {
        let handle = self.handle(index);
        let may_go = index >= self.first_later;
        let information = ProgramHeaderInfo::of(object, module, (self.adds, self.subs));
        Visit { index, handle: if may_go { handle } else { core::ptr::null_mut() }, information }
    }

    /// The handle of an object.
    pub fn handle(&self, index: ObjectIndex) -> *mut Handle {
        self.handles.get(index.position()).copied().unwrap_or(core::ptr::null_mut())
    }

    /// Links all link maps in load order and tells the host. Where memory is missing debuggers see old thread-local modules
    /// until the next change.
    pub fn tell_host(&self, world: &World, adding: bool) {
        let Some(host) = world.process.host else {
            self.relink_quietly();
            return;
        };
        host.changing(adding);
        let count = self.relink_quietly();
        if let Ok(table) = self.tls.table() {
            let _ = host.modules_changed(&table, &self.handles);
        }
        host.changed(self.handle(ObjectIndex(0)), count);
    }

    /// Links all link maps in load order; gives their number.
    pub fn relink_quietly(&self) -> u32 {
        let mut previous: *mut Handle = core::ptr::null_mut();
        let mut count = 0;
        for &handle in self.handles.iter().filter(|handle| !handle.is_null()) {
            // SAFETY: handles of loaded objects are alive; the writer lock is held, or start-up is alone.
            unsafe { (*handle).link_map.previous = previous.cast() };
            // SAFETY: as above.
            unsafe { (*handle).link_map.next = core::ptr::null_mut() };
            if !previous.is_null() {
                // SAFETY: as above.
                unsafe { (*previous).link_map.next = handle.cast() };
            }
            previous = handle;
            count += 1;
        }
        count
    }

    /// Notes that one object leads to another, which must stay as long; false if one of them is gone.
    pub fn bind(&mut self, bond: Bond) -> bool {
        if self.objects.get(bond.from).is_none() || self.objects.get(bond.to).is_none() {
            return false;
        }
        if bond.from < self.first_later {
            return pins::keep(self.handle(bond.to));
        }
        self.bonds.contains(&bond) || try_push(&mut self.bonds, bond).is_ok() || pins::keep(self.handle(bond.to))
    }

    /// Publishes the state; what it replaces is freed when nobody reads it.
    pub fn publish(&mut self, world: &World) -> Result<(), OutOfMemory> {
        self.unpublished = true;
        let snapshot = self.snapshot()?;
        self.retired.reserve(1)?;
        // Before anything that is no longer in the state is freed; and nobody sees what a child could not go on with.
        world.writer.renew_spare(world, self)?;
        self.unpublished = false;
        let old = world.publish(snapshot);
        self.retired.retire(Replaced::Snapshot(old))
    }

    /// Takes an object's memory back when nobody reads it any more. Without memory for the note it stays mapped.
    pub fn retire(&mut self, object: &'static Object, handle: *mut Handle) -> Result<(), OutOfMemory> {
        self.retired.retire(Replaced::Object { object, handle })
    }

    /// Takes those out of what was opened whose roots are to go. Their closures are freed when nobody reads them any more, or
    /// never without memory for the note.
    pub fn forget_opened(&mut self, goes: impl Fn(ObjectIndex) -> bool) {
        for opened in self.opened.iter().filter(|opened| goes(opened.root)) {
            if let Some(closure) = opened.closure {
                let _ = self.retired.retire(Replaced::Closure(core::ptr::from_ref(closure).cast_mut()));
            }
        }
        self.opened.retain(|opened| !goes(opened.root));
    }

    /// Frees what was retired and nobody reads, but for what a callback looks at.
    pub fn reclaim(&mut self, world: &World) {
        if self.retired.is_empty() || self.unpublished && self.publish(world).is_err() {
            return;
        }
        self.free_unread(world);
        world.backlog.store(self.retired.len(), Ordering::Relaxed);
    }

    fn free_unread(&mut self, world: &World) {
        self.retired.reclaim(&world.threads, |replaced| match *replaced {
            Replaced::Snapshot(snapshot) => {
                // SAFETY: made by a box, replaced by another one, and read by nobody.
                drop(unsafe { Box::from_raw(snapshot) });
                true
            }
            Replaced::Closure(closure) => {
                // SAFETY: made by a box, in no snapshot that anybody reads, and out of the state.
                drop(unsafe { Box::from_raw(closure) });
                true
            }
            Replaced::Object { handle, .. } if pins::is_visited(handle) => false,
            Replaced::Object { object, handle } => {
                release(object, handle);
                true
            }
        });
    }
}

/// Unmaps an object and frees its records.
fn release(object: &'static Object, handle: *mut Handle) {
    let (start, end) = (object.mapping.start, object.mapping.end);
    // SAFETY: the object is in no list and nobody reads it.
    let _ = unsafe { memory::unmap(start, end.wrapping_sub(start)) };
    let object = core::ptr::from_ref(object).cast_mut();
    // SAFETY: made by ObjectSet::add from a box; the set has given it up.
    drop(unsafe { Box::from_raw(object) });
    if !handle.is_null() {
        // SAFETY: made by make_handle from a box.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// The writer lock and what it protects.
pub(crate) struct WriterLock {
    lock: Lock,
    state: UnsafeCell<State>,
    /// While the state may be half changed: what it was before, or what is published now. Null at other times, and where there
    /// was no memory for it.
    spare: AtomicPtr<State>,
}

impl WriterLock {
    pub(crate) fn new(state: State) -> WriterLock {
        WriterLock { lock: Lock::new(), state: UnsafeCell::new(state), spare: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Makes the state as it is now the spare, if a fork may come in the middle: if there is another thread.
    fn renew_spare(&self, world: &World, state: &State) -> Result<(), OutOfMemory> {
        if world.threads.are_several() {
            let old = self.spare.swap(Box::into_raw(state.spare()?), Ordering::AcqRel);
            free_spare(old);
        }
        Ok(())
    }
}

fn free_spare(spare: *mut State) {
    if !spare.is_null() {
        // SAFETY: made by a box, and no longer the spare.
        drop(unsafe { Box::from_raw(spare) });
    }
}

/// As much may be retired before writers let readers run first.
const BACKLOG: usize = 16;
/// How often a call does so: a reader may be a callback that sleeps.
const TURNS: u32 = 32;
/// How long a turn is, nanoseconds: the reader may have been interrupted by other processes.
const TURN: usize = 50_000;

/// At the end of a call that may have retired something, outside sections: readers that were interrupted may hold up what
/// several writers retire in turn. So that this does not become more and more, they get the processor.
pub(crate) fn relieve(world: &World) {
    for _ in 0..TURNS {
        if world.backlog.load(Ordering::Relaxed) <= BACKLOG {
            return;
        }
        thread::rest(TURN);
        write(world, |state| state.reclaim(world));
    }
}

/// Works on the state under the writer lock, inside a section. Nothing in `work` may call foreign code, or sleep.
pub fn write<R>(world: &World, work: impl FnOnce(&mut State) -> R) -> R {
    fork::notice(world);
    let writer = &world.writer;
    writer.lock.with(|| {
        // SAFETY: we hold the lock, and nothing that runs under it comes back here.
        let state = unsafe { &mut *writer.state.get() };
        // Without memory the child of a fork in the middle of this may find the state half changed.
        let _ = writer.renew_spare(world, state);
        let result = work(state);
        free_spare(writer.spare.swap(core::ptr::null_mut(), Ordering::AcqRel));
        state.objects.free_removed();
        result
    })
}

/// In the child of a fork: if another thread was changing the state, it becomes what the change began with, or what it had
/// published. Then what other threads were doing to objects is dropped.
pub(crate) fn repair(world: &World, me: usize) {
    let writer = &world.writer;
    let was_held = writer.lock.free_if_left();
    writer.lock.with(|| {
        // SAFETY: we hold the lock, and nothing that runs under it comes back here.
        let state = unsafe { &mut *writer.state.get() };
        let spare = writer.spare.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if was_held && !spare.is_null() {
            // SAFETY: made by a box; there is no other user in this process.
            let spare = unsafe { Box::from_raw(spare) };
            // What is half changed is left as it is: nothing of it may be freed.
            core::mem::forget(core::mem::replace(state, *spare));
        }
        state.unloading = state.unloading.filter(|&thread| thread == me);
        state.tls.settle();
        for &handle in &state.handles {
            initialise::drop_work_of_others(handle);
            if state.unloading.is_none() {
                pins::reopen(handle);
            }
        }
        world.has_left.store(fresh::leave(state, me), Ordering::Relaxed);
        if was_held {
            // Readers see what was published last, debuggers something in between.
            let _ = state.publish(world);
            state.tell_host(world, true);
        }
    });
}
