//! The one record of a running process.
//!
//! What start-up decided never changes ([`Process`]). What is loaded is published as an immutable [`Snapshot`]: readers
//! (binding, lookup, unwinding) take it without a lock, inside a section of their thread's word. Writers hold the one
//! writer lock, change their own [`State`], and publish a new snapshot by one store; the old one is freed when no
//! thread can be reading it any more.

use crate::addresses::AddressMap;
use crate::iterate::Visit;
use crate::iterate_lock::IterateLock;
use crate::pins::Hold;
use crate::published::Published;
use crate::threads::Threads;
use crate::waiters::Waiters;
use crate::writer::{State, WriterLock};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use rtld_clib::LinkMap;
use rtld_clib::substitutes::{self, Substitute};
use rtld_link::descriptors::Descriptors;
use rtld_link::fallible::{OutOfMemory, try_box};
use rtld_link::lookup::{Definition, Resolver, Scopes};
use rtld_link::lookup_mode::{Lookup, LookupMode};
use rtld_link::map::Pages;
use rtld_link::object::{Object, ObjectIndex, ObjectTable};
use rtld_link::relocate::{Binding, Entries, Substitutes};
use rtld_link::static_tls::TlsTable;

/// What an object is known by outside: the address of its link map is also its handle and what its GOT holds.
#[repr(C)]
#[derive(Debug)]
pub struct Handle {
    /// What the C library and debuggers see; must come first.
    pub link_map: LinkMap,
    /// The C library's list of the objects that this one looks its symbols up in: only itself.
    pub own_list: usize,
    /// Which object it is.
    pub index: ObjectIndex,
    /// How far its initialisation is: see `initialise`.
    pub progress: AtomicU32,
    /// The thread, by its thread pointer, that is bringing it up or initialising it.
    pub owner: AtomicUsize,
    /// Whether it may be unloaded: see `pins`.
    pub hold: Hold,
    /// What its TLS descriptors point to.
    pub descriptors: Descriptors,
}

/// One byte more would cost a block of the heap of the next size, 128 bytes an object.
const _: () = assert!(size_of::<Handle>() == 1280);

/// A handle for an object that is not yet in any list.
pub fn make_handle(index: ObjectIndex, object: &Object) -> Result<*mut Handle, OutOfMemory> {
    let mut handle = try_box(Handle {
        link_map: LinkMap::new(),
        own_list: 0,
        index,
        progress: AtomicU32::new(0),
        owner: AtomicUsize::new(0),
        hold: Hold::new(),
        descriptors: Descriptors::new(),
    })?;
    handle.link_map.address = object.mapping.bias;
    handle.link_map.name = object.path.as_c_str().as_ptr().cast();
    let dynamic = object.mapping.layout.dynamic.map_or(0, |range| object.address(range.start));
    handle.link_map.dynamic = core::ptr::with_exposed_provenance(dynamic);
    Ok(Box::into_raw(handle))
}

/// What every initialiser is called with.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    /// argc.
    pub count: usize,
    /// argv.
    pub values: usize,
    /// envp.
    pub environment: usize,
}

/// Our code for each of the C library's functions that we replace, by [`Substitute`]; 0 where glibc's own is kept. Filled
/// before anything is relocated, and never changed afterwards.
#[derive(Debug)]
pub struct SubstituteTable([AtomicUsize; substitutes::COUNT]);

impl Default for SubstituteTable {
    fn default() -> SubstituteTable {
        SubstituteTable::new()
    }
}

impl Substitutes for SubstituteTable {
    fn substitute(&self, _: &Definition<'_>, name: &[u8], hash: u32) -> Option<usize> {
        self.address(name, hash)
    }
}

impl SubstituteTable {
    /// A table that replaces nothing.
    pub const fn new() -> SubstituteTable {
        SubstituteTable([const { AtomicUsize::new(0) }; substitutes::COUNT])
    }

    /// Says what replaces a function.
    pub fn set(&self, substitute: Substitute, address: usize) {
        if let Some(slot) = self.0.get(substitute as usize) {
            slot.store(address, Ordering::Relaxed);
        }
    }

    /// Our code for a name of the C library, if there is any.
    pub fn address(&self, name: &[u8], hash: u32) -> Option<usize> {
        let substitute = Substitute::from_name(name, hash)?;
        let address = self.0.get(substitute as usize)?.load(Ordering::Relaxed);
        (address != 0).then_some(address)
    }
}

/// The C library and debuggers, as far as they must hear of changes.
pub trait Host: Sync {
    /// Fills the C library's part of a new object's link map.
    fn adopt(&self, object: &Object, handle: *mut Handle, module: usize, offset: usize) -> Option<()>;
    /// The list of objects begins to change; debuggers are told by `changed`.
    fn changing(&self, adding: bool);
    /// The list of objects has changed.
    fn changed(&self, first: *mut Handle, count: u32);
    /// The thread-local modules have changed.
    fn modules_changed(&self, table: &TlsTable, handles: &[*mut Handle]) -> Option<()>;
    /// In the child of a fork: frees the locks of the C library that it leaves held, by threads that are not here.
    fn free_left_locks(&self);
    /// How many thread-local destructors of an object still wait.
    fn waiting_destructors(&self, handle: *mut Handle) -> usize;
}

/// What start-up decided.
pub struct Process {
    /// For initialisers.
    pub arguments: Arguments,
    /// The program's name for messages: its argv[0].
    pub program_name: &'static CStr,
    /// Size of the thread descriptor above the thread pointer.
    pub descriptor_size: usize,
    /// Bytes of static TLS below the thread pointer.
    pub static_tls_size: usize,
    /// Alignment of the thread pointer.
    pub static_tls_alignment: usize,
    /// Distance of the loader's own area below the thread pointer.
    pub own_area: usize,
    /// Our code in place of the C library's.
    pub substitutes: SubstituteTable,
    /// Entry points that relocations store.
    pub entries: Entries,
    /// When functions are bound that nobody says anything about.
    pub binding: Binding,
    /// How names are looked up while objects are relocated.
    pub lookup: LookupMode,
    /// The permissions of stacks (PF_*).
    pub stack_flags: u32,
    /// The system's pages.
    pub pages: Pages,
    /// The C library's side, if there is a C library.
    pub host: Option<&'static dyn Host>,
}

/// What is loaded, at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// All objects.
    pub objects: ObjectTable,
    /// Where symbols are looked for.
    pub scopes: Scopes,
    /// By address: the object.
    pub addresses: AddressMap,
    /// Thread-local modules.
    pub tls: TlsTable,
    /// By object: its handle; null where there is no object.
    pub handles: Vec<*mut Handle>,
    /// What callbacks of dl_iterate_phdr are told, in order.
    pub visits: Vec<Visit>,
    /// Objects from this index on were opened at run time.
    pub first_later: ObjectIndex,
    /// Who needs whom among these: pairs of an object and one in its DT_NEEDED, sorted.
    pub needs: Vec<(ObjectIndex, ObjectIndex)>,
    /// How many objects were ever loaded.
    pub adds: u64,
    /// How many of them were unloaded.
    pub subs: u64,
}

impl Snapshot {
    /// Symbol lookup.
    pub fn resolver(&self) -> Resolver<'_> {
        Resolver { objects: &self.objects, scopes: &self.scopes, names: None }
    }

    /// Symbol lookup for a relocation, by what was chosen for it.
    pub fn resolver_by<'s>(&'s self, lookup: &'s Lookup) -> Resolver<'s> {
        Resolver { names: lookup.names(), ..self.resolver() }
    }

    /// The handle of an object; null for one that is not there.
    pub fn handle(&self, index: ObjectIndex) -> *mut Handle {
        self.handles.get(index.position()).copied().unwrap_or(core::ptr::null_mut())
    }

    /// The object that a handle from outside belongs to, if it is the handle of one.
    pub fn index_of(&self, handle: *const Handle) -> Option<ObjectIndex> {
        let position = self.handles.iter().position(|&known| !known.is_null() && core::ptr::eq(known, handle))?;
        Some(ObjectIndex(position as u32))
    }

    /// The object with a code or data address.
    pub fn object_at(&self, address: usize) -> Option<ObjectIndex> {
        self.addresses.find(address)
    }
}

/// The process.
pub struct World {
    /// What start-up decided.
    pub process: Process,
    current: Published,
    /// The generation of the thread-local modules of the current snapshot.
    pub generation: AtomicUsize,
    /// The threads.
    pub threads: Threads,
    /// Who runs a callback of `dl_iterate_phdr`.
    pub(crate) iterating: IterateLock,
    /// How many threads wait for an object to be initialised.
    pub(crate) waiting: Waiters,
    pub(crate) writer: WriterLock,
    /// The process that the records were last put right in: see `fork`.
    pub(crate) lineage: AtomicU32,
    /// In the child of a fork: objects may wait for what another thread was to complete.
    pub(crate) has_left: AtomicBool,
    /// How much was retired and is not freed yet.
    pub(crate) backlog: AtomicUsize,
    /// Counts ended rounds of unloading; who needs an object that is being unloaded waits for it to change.
    pub(crate) rounds: AtomicU32,
}

// SAFETY: the process part never changes, snapshots are immutable, the rest is atomic or behind its lock. Handles are
// shared by design: what changes in them is atomic or changed under the writer lock.
unsafe impl Sync for World {}

impl World {
    /// A world with its first snapshot.
    pub fn new(process: Process, state: State, snapshot: Box<Snapshot>) -> World {
        let generation = AtomicUsize::new(snapshot.tls.generation);
        World {
            process,
            current: Published::new(Box::into_raw(snapshot).expose_provenance()),
            generation,
            threads: Threads::new(),
            iterating: IterateLock::new(),
            waiting: Waiters::new(),
            writer: WriterLock::new(state),
            lineage: AtomicU32::new(sigblock::lineage::FIRST),
            has_left: AtomicBool::new(false),
            backlog: AtomicUsize::new(0),
            rounds: AtomicU32::new(0),
        }
    }

    /// The current snapshot.
    ///
    /// # Safety
    /// The caller must be inside a section of its thread's word, or hold the writer lock, or be the only thread, for as
    /// long as it uses the result.
    pub unsafe fn snapshot(&self) -> &Snapshot {
        let current = core::ptr::with_exposed_provenance::<Snapshot>(self.current.read());
        // SAFETY: never null; freed only when no thread is inside a section (the caller's promise).
        unsafe { &*current }
    }

    /// Makes a snapshot the current one; gives the one before, to be freed when nobody reads it.
    pub(crate) fn publish(&self, snapshot: Box<Snapshot>) -> *mut Snapshot {
        self.generation.store(snapshot.tls.generation, Ordering::Release);
        let old = self.current.replace(Box::into_raw(snapshot).expose_provenance());
        core::ptr::with_exposed_provenance_mut(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtld_elf::gnu_hash;

    #[test]
    fn whatever_sections_replace_is_looked_for() {
        for &name in sigblock::REPLACED {
            let known = Substitute::from_name(name, gnu_hash(name)).map(Substitute::name);
            assert_eq!(known, Some(name), "{}", String::from_utf8_lossy(name));
        }
    }
}
