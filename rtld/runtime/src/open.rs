//! `dlopen`(3): loads a library and what it needs into the running process.
//!
//! Everything up to publishing happens under the writer lock and can be undone; resolvers and initialisers run after
//! the lock was given back, outside sections: also where a callback opens something.

use crate::bond_notes::BondNotes;
use crate::close;
use crate::fork;
use crate::fresh::{self, Fresh};
use crate::initialise::{self, FAILED, FINALISED, FINALISING, NEW, NotBroughtUp, Refuse};
use crate::pins;
use crate::resolve;
use crate::world::{Handle, Snapshot, World, make_handle};
use crate::writer::{self, Bond, Opened, State};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::Ordering;
use goblin::elf64::program_header::PF_X;
use rtld_elf::dynamic::Flags1;
use rtld_link::error::{Error, Reason};
use rtld_link::fallible::{OutOfMemory, try_push};
use rtld_link::init_order::init_order;
use rtld_link::load::Loader;
use rtld_link::lookup_mode::Lookup;
use rtld_link::object::{ObjectIndex, Role};
use rtld_link::relocate::{Binding, Later, Relocator};
use rtld_link::static_tls::Module;
use rtld_link::text::Text;
use rtld_link::version_check::{self, FindingKind};
use rtld_sys::{Errno, lock, memory, thread};
use sigblock::callback;

/// The flags of `dlopen`'s mode (<dlfcn.h> of Linux).
pub mod mode {
    /// RTLD_LAZY.
    pub const LAZY: u32 = 1;
    /// RTLD_NOW.
    pub const NOW: u32 = 2;
    /// RTLD_NOLOAD.
    pub const NOLOAD: u32 = 4;
    /// RTLD_DEEPBIND.
    pub const DEEPBIND: u32 = 8;
    /// RTLD_GLOBAL.
    pub const GLOBAL: u32 = 0x100;
    /// RTLD_NODELETE.
    pub const NODELETE: u32 = 0x1000;
}

/// Why there is no handle.
#[derive(Debug)]
pub enum Failure {
    /// RTLD_NOLOAD, and the library is not loaded: no handle, and no error either.
    NotLoaded,
    /// Neither RTLD_LAZY nor RTLD_NOW.
    InvalidMode(Text),
    /// An object could not be loaded or linked.
    Object(Error),
    /// What another thread began to load could not be completed.
    Incomplete(Text),
    /// A version is missing.
    Version {
        /// The object that should define it.
        provider: Text,
        /// The version.
        version: Text,
        /// The object that needs it.
        requester: Text,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotLoaded => f.write_str("shared object not loaded"),
            Failure::InvalidMode(file) => write!(f, "{file}: invalid mode for dlopen(): Invalid argument"),
            Failure::Object(error) => write!(f, "{error}"),
            Failure::Incomplete(path) => write!(f, "{path}: cannot be completed"),
            Failure::Version { provider, version, requester } => {
                write!(f, "{provider}: version `{version}' not found (required by {requester})")
            }
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Object(error)
    }
}

impl From<OutOfMemory> for Failure {
    fn from(error: OutOfMemory) -> Failure {
        Failure::Object(error.into())
    }
}

/// What a writer's part leaves to be done without the lock.
struct Prepared {
    handle: *mut Handle,
    /// Everything that must be initialised before the handle is given out.
    order: Vec<ObjectIndex>,
    fresh: Option<&'static Fresh>,
}

/// How a writer's part ended.
enum Outcome {
    /// What is left to be done.
    Prepared(Prepared),
    /// Something that is needed is being unloaded by another thread: try again when this round of unloading is over.
    Unloading(u32),
}

/// Opens a library by name for the code at `caller`.
pub fn open(world: &World, name: &[u8], mode: u32, caller: usize, refuse: Refuse) -> Result<*mut Handle, Failure> {
    if mode & (mode::LAZY | mode::NOW) == 0 {
        return Err(Failure::InvalidMode(Text::new(name)?));
    }
    callback::suspend(sigblock::current());
    fork::prepare(world);
    fresh::complete_left(world);
    let prepared = loop {
        let outcome = writer::write(world, |state| {
            state.reclaim(world);
            let result = Opening { world, state: &mut *state, mode }.prepare(name, caller);
            state.search.forget_cache();
            result
        })?;
        match outcome {
            Outcome::Prepared(prepared) => break prepared,
            Outcome::Unloading(round) => lock::wait_while(&world.rounds, round),
        }
    };
    writer::relieve(world);
    if let Some(fresh) = prepared.fresh
        && let Err(error) = fresh::complete(world, fresh)
    {
        // It is open: this very call opened it.
        let _ = close::close(world, prepared.handle, refuse);
        return Err(error.into());
    }
    // SAFETY: the objects are relocated; those of other threads are waited for.
    if let Err(NotBroughtUp(index)) = unsafe { initialise::run(world, &prepared.order, refuse) } {
        let path = writer::write(world, |state| path_of(state, index));
        let _ = close::close(world, prepared.handle, refuse);
        return Err(Failure::Incomplete(path?));
    }
    Ok(prepared.handle)
}

fn path_of(state: &State, index: ObjectIndex) -> Result<Text, OutOfMemory> {
    Text::new(state.objects.get(index).map_or(b"", |object| object.path.as_bytes()))
}

/// One call of `dlopen` under the writer lock.
struct Opening<'a> {
    world: &'a World,
    state: &'a mut State,
    mode: u32,
}

impl Opening<'_> {
    fn prepare(&mut self, name: &[u8], caller: usize) -> Result<Outcome, Failure> {
        if name.is_empty() {
            return self.known(ObjectIndex(0));
        }
        let from = self.caller(caller);
        if let Some(index) = self.state.objects.called(name) {
            return self.known(index);
        }
        let first = ObjectIndex(self.state.objects.bound() as u32);
        if self.mode & mode::NOLOAD != 0 {
            return match self.loaded_file(from, name) {
                Some(index) => self.known(index),
                None => Err(Failure::NotLoaded),
            };
        }
        let world = self.world;
        let global = self.state.global.len();
        let loaded = {
            let State { objects, search, .. } = &mut *self.state;
            Loader { objects, search, pages: world.process.pages, below: None, c_library: None }.load(
                from,
                Some(from),
                name,
            )
        };
        match loaded {
            Ok(index) if index < first => self.known(index),
            Ok(root) => {
                let outcome = self.load(root, first);
                if !matches!(outcome, Ok(Outcome::Prepared(_))) {
                    self.roll_back(first, global);
                }
                outcome
            }
            Err(error) => {
                self.roll_back(first, global);
                Err(error.into())
            }
        }
    }

    /// What is to be done about members of a closure that were finalised, or that nothing needs any more: nothing if the
    /// calling thread is unloading them itself, a wait if another one is, so that they come back fresh. What stayed after all
    /// begins anew; what could not be completed is an error.
    fn finalised(&self, members: &[ObjectIndex]) -> Result<Option<u32>, Failure> {
        // SAFETY: threads of this process have thread pointers.
        let me = unsafe { thread::pointer() };
        if self.state.unloading.is_some_and(|thread| thread != me) {
            let used = close::used(self.world, self.state)?;
            if members.iter().any(|index| used.get(index.position()) == Some(&false)) {
                return Ok(Some(self.world.rounds.load(Ordering::Acquire)));
            }
        }
        for &index in members.iter().filter(|&&index| index >= self.state.first_later) {
            let Some(word) = initialise::progress(self.state.handle(index)) else { continue };
            let progress = word.load(Ordering::Acquire);
            match self.state.unloading {
                Some(thread) if thread != me && matches!(progress, FINALISING | FINALISED | FAILED) => {
                    return Ok(Some(self.world.rounds.load(Ordering::Acquire)));
                }
                None if progress == FINALISED => word.store(NEW, Ordering::Release),
                _ if progress == FAILED => return Err(Failure::Incomplete(path_of(self.state, index)?)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The object whose code calls; the program for code that is in none.
    fn caller(&self, address: usize) -> ObjectIndex {
        let holder = self.state.objects.find(|object| object.mapping.spans(address));
        holder.unwrap_or(ObjectIndex(0))
    }

    /// A loaded object that is the file a name leads to.
    fn loaded_file(&mut self, from: ObjectIndex, name: &[u8]) -> Option<ObjectIndex> {
        let State { objects, search, .. } = &mut *self.state;
        let identity = search.find(objects, from, name).ok()?.identity();
        objects.find(|object| object.identity == Some(identity))
    }

    /// One more handle to an object that is loaded.
    fn known(&mut self, root: ObjectIndex) -> Result<Outcome, Failure> {
        let members = self.state.objects.closure(root)?;
        if let Some(round) = self.finalised(&members)? {
            return Ok(Outcome::Unloading(round));
        }
        // Initialisers run for the first one who opens an object, as in glibc; others wait for what is under way elsewhere.
        let again = root.position() == 0 || self.state.opened.iter().any(|opened| opened.root == root);
        let changed = self.note_open(root, &members)?;
        if changed {
            self.state.publish(self.world)?;
        }
        let mut order = self.order(&members)?;
        if again {
            let first = self.state.first_later;
            order.retain(|&index| index >= first && !initialise::is_under_way_here(self.state.handle(index)));
        }
        Ok(Outcome::Prepared(Prepared { handle: self.state.handle(root), order, fresh: None }))
    }

    /// Counts the handle and extends the scopes; tells whether readers must hear of it.
    fn note_open(&mut self, root: ObjectIndex, members: &[ObjectIndex]) -> Result<bool, OutOfMemory> {
        let mut changed = false;
        let deep = self.mode & mode::DEEPBIND != 0;
        match self.state.opened.iter_mut().find(|opened| opened.root == root) {
            Some(opened) => opened.count = opened.count.saturating_add(1),
            None => {
                let deep = deep && root >= self.state.first_later;
                let opened = Opened::new(&self.state.objects, root, 1, deep)?;
                try_push(&mut self.state.opened, opened)?;
                changed = true;
            }
        }
        if self.mode & mode::GLOBAL != 0 {
            for &member in members {
                if !self.state.global.contains(&member) && self.is_searched(member) {
                    try_push(&mut self.state.global, member)?;
                    changed = true;
                }
            }
        }
        if self.mode & mode::NODELETE != 0 {
            pins::keep(self.state.handle(root));
        }
        Ok(changed)
    }

    fn is_searched(&self, index: ObjectIndex) -> bool {
        let object = self.state.objects.get(index);
        object.is_some_and(|object| !matches!(object.role, Role::Vdso | Role::Ourselves))
    }

    /// The initialisers' order of a closure.
    fn order(&self, members: &[ObjectIndex]) -> Result<Vec<ObjectIndex>, OutOfMemory> {
        if members.first() == Some(&ObjectIndex(0)) {
            return Ok(Vec::new());
        }
        init_order(&self.state.objects, members, &[])
    }

    /// Brings up what was loaded from `first` on.
    fn load(&mut self, root: ObjectIndex, first: ObjectIndex) -> Result<Outcome, Failure> {
        let world = self.world;
        let missing = {
            let State { objects, search, .. } = &mut *self.state;
            Loader { objects, search, pages: world.process.pages, below: None, c_library: None }
                .load_dependencies(first)?
        };
        if let Some(missing) = missing.into_iter().next() {
            return Err(missing.error.into());
        }
        self.check_versions(first)?;
        self.check_kind(first)?;
        let members = self.state.objects.closure(root)?;
        if let Some(round) = self.finalised(&members)? {
            return Ok(Outcome::Unloading(round));
        }
        self.make_handles(first)?;
        self.note_open(root, &members)?;
        let snapshot = self.state.snapshot()?;
        let (later, bonds) = self.relocate(&snapshot, first)?;
        for bond in bonds {
            try_push(&mut self.state.bonds, bond)?;
        }
        let order = self.order(&members)?;
        let (deferred, _) = resolve::order(&snapshot, &order, &later.deferred)?;
        let mut objects = Vec::new();
        let mut modules = Vec::new();
        for (index, object) in self.state.objects.iter().filter(|(index, _)| *index >= first) {
            try_push(&mut objects, (index, object))?;
            if let Some(module) = self.state.tls.module(index).filter(Module::is_static) {
                try_push(&mut modules, module)?;
            }
        }
        let added = objects.len() as u64;
        let fresh = Fresh::note(self.state, objects, modules, deferred, later.copies)?;
        self.state.adds += added;
        if let Err(error) = self.state.publish(world) {
            self.state.adds -= added;
            fresh::forget(self.state, fresh);
            return Err(error.into());
        }
        // From here on readers see the objects, and nothing can fail any more.
        self.state.tls.settle();
        self.state.tell_host(world, true);
        fresh.fill_modules(world);
        Ok(Outcome::Prepared(Prepared { handle: self.state.handle(root), order, fresh: Some(fresh) }))
    }

    fn check_versions(&self, first: ObjectIndex) -> Result<(), Failure> {
        let objects = &self.state.objects;
        let findings = version_check::check(objects, first)?;
        let Some(finding) = findings.iter().find(|finding| finding.kind == FindingKind::NotFound) else {
            return Ok(());
        };
        let name = |index| Text::new(objects.get(index).map_or(b"", |object| object.path.as_bytes()));
        Err(Failure::Version {
            provider: name(finding.provider)?,
            version: Text::new(finding.version)?,
            requester: name(finding.requester)?,
        })
    }

    /// Objects that cannot be had at run time: those that say so, and those that would make the stacks executable.
    fn check_kind(&self, first: ObjectIndex) -> Result<(), Error> {
        for (_, object) in self.state.objects.iter().filter(|(index, _)| *index >= first) {
            let fail = |reason: Reason| Err(reason.of(object.path.as_bytes()));
            if object.dynamic.as_ref().is_some_and(|dynamic| dynamic.flags_1.contains(Flags1::NOOPEN)) {
                return fail(Reason::NotForOpen);
            }
            let executable = object.mapping.layout.stack_flags.unwrap_or(PF_X) & PF_X != 0;
            if executable && self.world.process.stack_flags & PF_X == 0 {
                return fail(Reason::ExecutableStack(Errno::INVAL));
            }
        }
        Ok(())
    }

    fn make_handles(&mut self, first: ObjectIndex) -> Result<(), Failure> {
        for position in first.0..self.state.objects.bound() as u32 {
            let index = ObjectIndex(position);
            let Some(object) = self.state.objects.get(index) else { continue };
            self.state.tls.add(index, object)?;
            let handle = make_handle(index, object)?;
            initialise::claim(handle);
            if object.dynamic.as_ref().is_some_and(|dynamic| dynamic.flags_1.contains(Flags1::NODELETE)) {
                pins::keep(handle);
            }
            while self.state.handles.len() <= index.position() {
                try_push(&mut self.state.handles, core::ptr::null_mut())?;
            }
            if let Some(place) = self.state.handles.get_mut(index.position()) {
                *place = handle;
            }
        }
        Ok(())
    }

    fn relocate(&self, snapshot: &Snapshot, first: ObjectIndex) -> Result<(Later, Vec<Bond>), Error> {
        let process = &self.world.process;
        let now = self.mode & mode::NOW != 0 || process.binding == Binding::Now;
        let handle = |index: ObjectIndex| self.state.handle(index).expose_provenance();
        let notes = BondNotes::new(snapshot, self.state.first_later);
        let binding = if now { Binding::Now } else { Binding::Lazy };
        let later = self.state.objects.iter().map(|(index, _)| index).filter(|index| *index >= first);
        let lookup = Lookup::choose(process.lookup, &snapshot.objects, &snapshot.scopes, binding, process.pages, later);
        let relocator = Relocator {
            resolver: snapshot.resolver_by(&lookup),
            tls: &self.state.tls,
            substitutes: &process.substitutes,
            notes: &notes,
            entries: process.entries,
            binding,
            pages: process.pages,
            handle: &handle,
        };
        let mut later = Later::default();
        let fresh = self.state.objects.iter().rev().take_while(|(index, _)| *index >= first);
        for (index, _) in fresh {
            relocator.relocate(index, &mut later)?;
        }
        core::mem::take(&mut later.descriptors).hand_out(|index| {
            // SAFETY: null, or a handle that was made a moment ago and that nobody else knows.
            unsafe { self.state.handle(index).as_mut() }.map(|handle| &mut handle.descriptors)
        });
        if let Some(host) = process.host {
            for (index, object) in self.state.objects.iter().filter(|(index, _)| *index >= first) {
                let module = self.state.tls.module(index);
                let offset = module.map_or(0, |module| module.offset);
                let id = self.state.tls.id(index) as usize;
                host.adopt(object, self.state.handle(index), id, offset).ok_or(Reason::CLibraryLayout)?;
            }
        }
        Ok((later, notes.into_bonds()?))
    }

    /// Undoes what was loaded from `first` on; nobody has seen it. `global` is how many objects the global scope had.
    fn roll_back(&mut self, first: ObjectIndex, global: usize) {
        self.state.forget_opened(|root| root >= first);
        self.state.global.truncate(global);
        self.state.bonds.retain(|bond| bond.from < first && bond.to < first);
        for position in (first.0..self.state.objects.bound() as u32).rev() {
            let index = ObjectIndex(position);
            self.state.tls.remove(index);
            self.state.search.forget(index);
            if let Some(handle) = self.state.handles.get_mut(index.position()) {
                let handle = core::mem::replace(handle, core::ptr::null_mut());
                if !handle.is_null() {
                    // SAFETY: made by make_handle from a box, and given to nobody.
                    drop(unsafe { Box::from_raw(handle) });
                }
            }
            if let Some(object) = self.state.objects.remove(index) {
                let (start, end) = (object.mapping.start, object.mapping.end);
                // SAFETY: nothing of the object was handed out.
                let _ = unsafe { memory::unmap(start, end.wrapping_sub(start)) };
                // SAFETY: made by ObjectSet::add from a box; the set has given it up.
                drop(unsafe { Box::from_raw(core::ptr::from_ref(object).cast_mut()) });
            }
        }
        self.state.handles.truncate(self.state.objects.bound());
    }
}
