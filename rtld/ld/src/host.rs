//! The C library's side of start-up: recognise it, tell it what its own loader would have told it, make the main thread as
//! it expects it. Without a C library the same steps do what the psABI asks.

use crate::exports;
use crate::stack::InitialStack;
use core::fmt;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use rtld_clib::{
    Callbacks, Glibc, Library, ObjectFacts, ProcessFacts, RseqFacts, ThreadFacts, TlsFacts, Tunables, Unsupported,
};
use rtld_elf::{Dyn, PF_W, PF_X, Table, segments, tag};
use rtld_link::error::{Error, Reason};
use rtld_link::fallible::{try_filled, try_push};
use rtld_link::load::PASSIVE_LOADER;
use rtld_link::lookup::{Purpose, Reference, find_in};
use rtld_link::object::{Object, ObjectIndex, ObjectSet, Role};
use rtld_link::search::Trust;
use rtld_link::static_tls::{Extra, TlsPlan, TlsTable};
use rtld_link::text::Text;
use rtld_runtime::world::{Handle, Host as _, Snapshot, World};
use rtld_runtime::{thread_local, threads};
use rtld_sys::auxv::{
    AT_CLKTCK, AT_HWCAP, AT_HWCAP2, AT_MINSIGSTKSZ, AT_PAGESZ, AT_PLATFORM, AT_RANDOM, AT_RSEQ_ALIGN,
    AT_RSEQ_FEATURE_SIZE, AT_SYSINFO_EHDR, AuxVector,
};
use rtld_sys::thread;

/// A C library that we know how to host.
pub struct Host {
    glibc: Glibc,
    settings: Settings,
    /// The main thread's vector, as it was at start.
    initial_vector: AtomicUsize,
    /// The list of thread-local modules for debuggers; null until it was made.
    slots: AtomicPtr<usize>,
}

/// What the user's tunables decide in the loader itself.
#[derive(Clone, Copy, Debug)]
struct Settings {
    /// glibc.rtld.nns.
    namespaces: usize,
    /// glibc.rtld.optional_static_tls, bytes.
    optional_static_tls: usize,
    /// glibc.pthread.rseq.
    rseq: bool,
}

impl Default for Settings {
    /// glibc's own defaults (dl-tunables.list).
    fn default() -> Settings {
        Settings { namespaces: 4, optional_static_tls: 512, rseq: true }
    }
}

/// A C library that we do not know.
pub enum Stranger<'a> {
    /// It looks like glibc, but not like one that we know.
    Glibc(Unsupported<'a>),
    /// It is some other one, at this path.
    Other(&'a [u8]),
}

impl fmt::Display for Stranger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stranger::Glibc(unsupported) => write!(f, "{unsupported}"),
            Stranger::Other(path) => {
                let path = rtld_link::text::Bytes(path);
                write!(f, "unsupported C library: found {path}; supported: glibc")
            }
        }
    }
}

/// Descriptor size for a process without a C library: the control block and room for what compilers reach in it.
const BARE_DESCRIPTOR: usize = 1024;

/// glibc's free static TLS: for each name space, room for the initial-exec variables of a libc and of other libraries
/// (144 bytes each on x86-64), and the optional rest. 1664 bytes by default.
fn surplus(settings: &Settings) -> usize {
    settings.namespaces.saturating_mul(2 * 144).saturating_add(settings.optional_static_tls)
}

fn library_of<'a>(object: &'a Object) -> Option<Library<'a>> {
    let dynamic = object.dynamic.as_ref()?;
    Some(Library { base: object.mapping.bias, image: object.image(), dynamic })
}

/// Looks for the C library among the objects.
pub fn recognise(objects: &ObjectSet, stack: InitialStack, trust: Trust) -> Result<Option<Host>, Stranger<'_>> {
    let by_soname = |name: &[u8]| {
        objects.iter().find(|(_, object)| object.soname() == Some(name) && object.role != Role::Ourselves)
    };
    let libc = by_soname(b"libc.so.6").and_then(|(_, object)| library_of(object));
    let loader = by_soname(PASSIVE_LOADER).and_then(|(_, object)| library_of(object));
    match (libc, loader) {
        // SAFETY: the loader's file was mapped by us a moment ago, is not relocated, and stays mapped.
        (Some(libc), Some(loader)) => match unsafe { rtld_clib::recognise(&libc, &loader) } {
            Ok(glibc) => Ok(Some(Host {
                glibc,
                settings: apply_tunables(&loader, stack, trust),
                initial_vector: AtomicUsize::new(0),
                slots: AtomicPtr::new(core::ptr::null_mut()),
            })),
            Err(unsupported) => Err(Stranger::Glibc(unsupported)),
        },
        _ => {
            let entry = Reference::to(b"__libc_start_main", Purpose::Call);
            let other = objects.iter().find(|&(index, _)| find_in(objects.table(), index, &entry).is_some());
            match other {
                Some((_, object)) => Err(Stranger::Other(object.path.as_bytes())),
                None => Ok(None),
            }
        }
    }
}

/// Stores the user's tunables where the C library reads them, and reads those that concern us. The C library's resolver
/// for the processor asks for tunables too, so this comes before all resolvers.
fn apply_tunables(loader: &Library<'_>, stack: InitialStack, trust: Trust) -> Settings {
    let mut settings = Settings::default();
    // SAFETY: the file was mapped by us a moment ago and is writable where it says so.
    let Some(tunables) = (unsafe { Tunables::find(loader) }) else { return settings };
    if trust == Trust::Full {
        let variables = stack.environment().filter_map(|entry| {
            let entry = entry.to_bytes();
            let equals = entry.iter().position(|&byte| byte == b'=')?;
            let (name, value) = entry.split_at(equals);
            Some((name, value.get(1..)?))
        });
        // Values that are texts stay for the life of the process.
        let keep = |text: &[u8]| Text::new(text).ok().map(|text| text.leak().as_ptr().expose_provenance());
        // A list that cannot be written keeps its defaults; recognise() has checked the file.
        let _ = tunables.apply(variables, keep);
    }
    let number = |name: &[u8], default: usize| {
        tunables.value(name).and_then(|value| usize::try_from(value).ok()).unwrap_or(default)
    };
    settings.namespaces = number(b"glibc.rtld.nns", settings.namespaces);
    settings.optional_static_tls = number(b"glibc.rtld.optional_static_tls", settings.optional_static_tls);
    settings.rseq = number(b"glibc.pthread.rseq", 1) != 0;
    settings
}

/// Bytes above the thread pointer that belong to a thread.
pub fn descriptor_size(library: Option<&Host>) -> usize {
    library.map_or(BARE_DESCRIPTOR, |host| host.glibc.descriptor_size())
}

fn rseq_facts(host: &Host, auxiliary: AuxVector, below: usize) -> RseqFacts {
    RseqFacts {
        enabled: host.settings.rseq,
        feature_size: auxiliary.get(AT_RSEQ_FEATURE_SIZE).unwrap_or(0),
        align: auxiliary.get(AT_RSEQ_ALIGN).unwrap_or(0),
        extra_tls: below,
    }
}

/// Lays static TLS out, with the room that the C library wants and the user asks for.
pub fn plan_tls(
    objects: &ObjectSet,
    library: Option<&Host>,
    stack: InitialStack,
    asked: usize,
) -> Result<TlsPlan, Reason> {
    let area = library.and_then(|host| host.glibc.extra_tls(&rseq_facts(host, stack.auxiliary(), 0)));
    let settings = library.map_or_else(Settings::default, |host| host.settings);
    let extra = Extra { area, own: threads::OWN, surplus: surplus(&settings).max(asked) };
    TlsPlan::new(objects.table(), extra)?.ok_or(Reason::TlsLayout)
}

fn outside(_: rtld_clib::OutsideRegion) -> Error {
    Reason::CLibraryLayout.of(b"libc.so.6")
}

/// Makes the main thread's control block, static blocks and vector, and sets the thread pointer; before that the C
/// library is told everything that does not need relocation. `extra` is where the C library's own area lies.
pub fn make_main_thread(
    world: &'static World,
    snapshot: &Snapshot,
    library: Option<&'static Host>,
    stack: InitialStack,
    trust: Trust,
    extra: usize,
) -> Result<usize, Error> {
    let control = thread_local::allocate_block(world).ok_or(Reason::OutOfMemory)?;
    // SAFETY: the block is fresh and no thread uses it yet.
    unsafe { thread_local::attach(world, snapshot, control) }.ok_or(Reason::OutOfMemory)?;
    let auxiliary = stack.auxiliary();
    let random = random_bytes(auxiliary);
    if let Some(host) = library {
        publish(world, snapshot, host, stack, trust)?;
        host.initial_vector.store(vector(control), Ordering::Relaxed);
    } else {
        // SAFETY: the descriptor is ours and has room for the head.
        unsafe { rtld_clib::thread::write_head(control, vector(control), random) }.map_err(outside)?;
    }
    // SAFETY: the control block's first word is its own address.
    unsafe { thread::set_pointer(control) }.map_err(|error| Reason::ThreadPointer(error).of(b""))?;
    if let Some(host) = library {
        let rseq = rseq_facts(host, auxiliary, extra);
        let facts = ThreadFacts { dtv: vector(control), random, initial_stack: stack.address(), rseq };
        // SAFETY: the descriptor is the main thread's, of the size that the library wants.
        unsafe { host.glibc.prepare_main_thread(control, &facts) }.map_err(outside)?;
    }
    Ok(control)
}

/// The word of the control block that holds the thread's vector.
fn vector(control: usize) -> usize {
    let word = core::ptr::with_exposed_provenance::<usize>(control.wrapping_add(8));
    // SAFETY: the control block was made by allocate_block.
    unsafe { word.read() }
}

fn random_bytes(auxiliary: AuxVector) -> Option<[u64; 2]> {
    let address = auxiliary.get(AT_RANDOM).filter(|&address| address != 0)?;
    let pointer = core::ptr::with_exposed_provenance::<[u64; 2]>(address);
    // SAFETY: AT_RANDOM points to 16 bytes of the kernel's, of any alignment.
    Some(unsafe { pointer.read_unaligned() })
}

/// Zero words that stand for the C library's list of search directories, of which it must see none.
static NO_DIRECTORIES: [u64; 64] = [0; 64];

fn publish(world: &World, snapshot: &Snapshot, host: &Host, stack: InitialStack, trust: Trust) -> Result<(), Error> {
    let auxiliary = stack.auxiliary();
    let value = |key| auxiliary.get(key).unwrap_or(0);
    let platform = auxiliary.get(AT_PLATFORM).filter(|&address| address != 0).map(|address| {
        let text = core::ptr::with_exposed_provenance(address);
        // SAFETY: AT_PLATFORM is a C string that the kernel made.
        (address, unsafe { core::ffi::CStr::from_ptr(text) }.count_bytes())
    });
    let facts = ProcessFacts {
        argv: stack.arguments(),
        initial_stack: stack.address(),
        auxv: auxiliary.as_ptr().expose_provenance(),
        page_size: value(AT_PAGESZ),
        minimum_signal_stack: value(AT_MINSIGSTKSZ),
        clock_ticks: value(AT_CLKTCK) as u32,
        hwcap: value(AT_HWCAP) as u64,
        hwcap2: value(AT_HWCAP2) as u64,
        platform,
        secure: trust == Trust::Secure,
        stack_flags: world.process.stack_flags,
        tls_static_size: thread_local::static_size(world),
        tls_static_align: world.process.static_tls_alignment,
        main_map: snapshot.handle(ObjectIndex(0)).expose_provenance(),
        object_count: snapshot.objects.count() as u32,
        empty_directory: (&raw const NO_DIRECTORIES).expose_provenance(),
    };
    host.glibc.publish(&facts).map_err(outside)?;
    let vdso = snapshot.objects.iter().find(|(_, object)| object.role == Role::Vdso);
    if let Some((index, object)) = vdso
        && let Some(library) = library_of(object)
    {
        let map = snapshot.handle(index).expose_provenance();
        host.glibc.publish_vdso(&library, map, value(AT_SYSINFO_EHDR)).map_err(outside)?;
    }
    Ok(())
}

/// Fills the C library's part of every start-up object's link map.
pub fn adopt_all(snapshot: &Snapshot, tls: &TlsPlan, host: &'static Host) -> Result<(), Error> {
    let mut scope = alloc::vec::Vec::new();
    for (index, object) in snapshot.objects.iter() {
        let offset = tls.module(index).map_or(0, |module| module.offset);
        let adopted = host.adopt(object, snapshot.handle(index), tls.id(index) as usize, offset);
        adopted.ok_or(Reason::CLibraryLayout)?;
        if !matches!(object.role, Role::Vdso | Role::Ourselves) {
            try_push(&mut scope, snapshot.handle(index))?;
        }
    }
    let scope: &'static [_] = scope.leak();
    let program = snapshot.handle(ObjectIndex(0));
    // SAFETY: start-up is alone, and the handle is alive.
    let link_map = unsafe { &mut (*program).link_map };
    let list = scope.as_ptr().expose_provenance();
    link_map.set_search_list(host.glibc.offsets(), list, scope.len() as u32).map_err(outside)
}

impl rtld_runtime::world::Host for Host {
    fn adopt(&self, object: &Object, handle: *mut Handle, module: usize, offset: usize) -> Option<()> {
        relocate_dynamic_section(object);
        // SAFETY: the caller holds the writer lock or is alone; nobody else uses this part of a link map.
        let handle = unsafe { &mut *handle };
        // A list of one: the object itself, which is the first word that a pointer to its own address finds.
        handle.own_list = (&raw const *handle).expose_provenance();
        let facts = ObjectFacts {
            map_start: object.mapping.start,
            map_end: object.mapping.end,
            text_end: text_end(object),
            program_headers: object.mapping.headers.as_ptr().expose_provenance(),
            program_header_count: object.mapping.headers.len() as u16,
            entry: object.address(object.mapping.entry),
            dynamic: dynamic_entries(object),
            tls_module: module,
            tls_offset: offset,
            search_list: (&raw const handle.own_list).expose_provenance(),
            search_list_length: 1,
        };
        handle.link_map.fill(self.glibc.offsets(), &facts).ok()
    }

    fn changing(&self, adding: bool) {
        exports::debugger_is_changing(adding);
    }

    fn changed(&self, first: *mut Handle, count: u32) {
        // The number is read by code of glibc's that we have replaced; a debugger must hear of the change anyway.
        let _ = self.glibc.publish_objects(first.expose_provenance(), count);
        exports::debugger_is_consistent();
    }

    fn modules_changed(&self, table: &TlsTable, handles: &[*mut Handle]) -> Option<()> {
        let count = table.slots.len() + 1;
        let list = self.slot_list(count)?;
        for (position, slot) in core::iter::once(None).chain(table.slots.iter().map(Some)).enumerate() {
            let module = slot.and_then(|slot| slot.module);
            let map = module.and_then(|module| handles.get(module.object.position()).copied());
            let pair = list.wrapping_add(2 + 2 * position);
            // SAFETY: slot_list made room for `count` pairs.
            unsafe { pair.write(slot.map_or(0, |slot| slot.generation)) };
            // SAFETY: the second word of the pair.
            unsafe { pair.wrapping_add(1).write(map.map_or(0, |map| map.expose_provenance())) };
        }
        let facts = TlsFacts {
            slotinfo: list.expose_provenance(),
            max_module: table.slots.len(),
            static_count: table.slots.len(),
            generation: table.generation,
            initial_dtv: self.initial_vector.load(Ordering::Relaxed),
        };
        self.glibc.publish_tls(&facts).ok()
    }

    fn waiting_destructors(&self, handle: *mut Handle) -> usize {
        if handle.is_null() {
            return 0;
        }
        // SAFETY: the caller holds the writer lock, so the handle is alive.
        unsafe { &*handle }.link_map.tls_destructor_count(self.glibc.offsets())
    }
}

impl Host {
    /// The list of thread-local modules that debuggers read: its length, no next one, then a pair for each module id
    /// from 0 on. Grows by being made anew; the one before stays, since a debugger may be looking at it.
    fn slot_list(&self, count: usize) -> Option<*mut usize> {
        let current = self.slots.load(Ordering::Relaxed);
        if !current.is_null() {
            // SAFETY: made below; the first word is its length.
            let room = unsafe { current.read() };
            if room >= count {
                return Some(current);
            }
        }
        let room = count.checked_add(16)?;
        let list = try_filled(0_usize, 2 + 2 * room).ok()?.leak();
        *list.first_mut()? = room;
        let list = list.as_mut_ptr();
        self.slots.store(list, Ordering::Relaxed);
        Some(list)
    }
}

fn text_end(object: &Object) -> usize {
    let executable = segments::loads(object.mapping.headers).filter(|load| load.p_flags & PF_X != 0);
    executable.map(|load| object.address(load.p_vaddr.wrapping_add(load.p_memsz))).max().unwrap_or(object.mapping.end)
}

fn dynamic_entries(object: &Object) -> Table<'static, Dyn> {
    let range = object.mapping.layout.dynamic;
    range.and_then(|range| object.image().table(range.start, range.size / 16)).unwrap_or(Table::empty())
}

/// Tags whose values glibc turns into addresses in memory; its own code, sanitizers and others rely on finding them so.
const ADDRESS_TAGS: [u64; 9] = [
    tag::DT_PLTGOT,
    tag::DT_HASH,
    tag::DT_STRTAB,
    tag::DT_SYMTAB,
    tag::DT_RELA,
    tag::DT_JMPREL,
    tag::DT_GNU_HASH,
    tag::DT_VERSYM,
    tag::DT_RELR,
];

/// Adds the load bias to the addresses in an object's dynamic section, if that can be written.
fn relocate_dynamic_section(object: &Object) {
    if matches!(object.role, Role::Vdso | Role::Ourselves) || object.mapping.bias == 0 {
        return;
    }
    let Some(range) = object.mapping.layout.dynamic else { return };
    if !object.image().contains(range.start, range.size, PF_W) {
        return;
    }
    for (position, entry) in dynamic_entries(object).iter().enumerate() {
        if entry.d_tag == 0 {
            break;
        }
        if ADDRESS_TAGS.contains(&entry.d_tag) {
            let address = object.address(range.start).wrapping_add(position * size_of::<Dyn>());
            let place = core::ptr::with_exposed_provenance_mut::<Dyn>(address);
            let moved = Dyn { d_val: object.address(entry.d_val) as u64, ..entry };
            // SAFETY: an entry of a dynamic section in a writable segment; all that is needed of it was read before.
            unsafe { place.write_unaligned(moved) };
        }
    }
}

/// Puts our functions into the C library's table, once its own relocations and resolvers have written theirs.
pub fn publish_functions(library: Option<&Host>) -> Result<(), Error> {
    let Some(host) = library else { return Ok(()) };
    let callbacks: Callbacks = exports::callbacks();
    host.glibc.publish_callbacks(&callbacks).map_err(outside)
}

/// The last step before initialisers: the C library's own early initialisation.
pub fn finish(library: Option<&'static Host>) {
    if let Some(host) = library {
        // SAFETY: all objects are relocated, the main thread's TLS is filled and everything is published.
        unsafe { host.glibc.early_init() };
    }
}
