//! The C library that is hosted: recognised once, with what the user's tunables say, and how much static TLS it wants.

use crate::exports;
use crate::report::Writer;
use crate::stack::InitialStack;
use crate::start;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use rtld_clib::processor::This;
use rtld_clib::{Callbacks, Glibc, Library, ReadFile, RseqFacts, Tunables, Unsupported};
use rtld_link::deferred::is_code;
use rtld_link::error::{Error, Reason};
use rtld_link::load::{C_LIBRARY, PASSIVE_LOADER};
use rtld_link::lookup::{Purpose, Reference, find_in};
use rtld_link::object::{Object, ObjectIndex, ObjectSet, ObjectTable, Role};
use rtld_link::search::Trust;
use rtld_link::static_tls::{Extra, TlsPlan};
use rtld_link::text::Text;
use rtld_runtime::threads;
use rtld_runtime::world::Snapshot;
use rtld_sys::auxv::{AT_RSEQ_ALIGN, AT_RSEQ_FEATURE_SIZE, AuxVector};
use rtld_sys::file::{self, File};

/// A C library that we know how to host.
pub struct Host {
    pub(crate) glibc: Glibc,
    settings: Settings,
    /// The main thread's vector, as it was at start.
    pub(crate) initial_vector: AtomicUsize,
    /// The list of thread-local modules for debuggers; null until it was made.
    pub(crate) slots: AtomicPtr<usize>,
    /// The C library's own object.
    pub(crate) libc: Library<'static>,
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
    /// Whether one of glibc.cpu is set.
    processor: bool,
}

impl Default for Settings {
    /// glibc's own defaults (dl-tunables.list).
    fn default() -> Settings {
        Settings { namespaces: 4, optional_static_tls: 512, rseq: true, processor: false }
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

/// An object as rtld-clib looks at it.
pub fn library_of<'a>(object: &'a Object) -> Option<Library<'a>> {
    let dynamic = object.dynamic.as_ref()?;
    Some(Library { base: object.mapping.bias, image: object.image(), dynamic })
}

/// The object with a soname, unless it is ourselves.
pub fn by_soname(objects: &ObjectTable, name: &[u8]) -> Option<(ObjectIndex, &'static Object)> {
    objects.iter().find(|(_, object)| object.soname() == Some(name) && object.role != Role::Ourselves)
}

/// Looks for the C library among the objects.
pub fn recognise(
    objects: &ObjectSet,
    file: Option<(ObjectIndex, File)>,
    stack: InitialStack,
    trust: Trust,
) -> Result<Option<Host>, Stranger<'_>> {
    let first = by_soname(objects.table(), C_LIBRARY);
    let libc = first.and_then(|(_, object)| library_of(object));
    let loader = by_soname(objects.table(), PASSIVE_LOADER).and_then(|(_, object)| library_of(object));
    // There may be several.
    let file = file.filter(|(index, _)| first.is_some_and(|(first, _)| first == *index)).map(|(_, file)| file);
    let read = |bytes: &mut [u8], offset: u64| file.as_ref()?.read_at(bytes, offset).ok();
    let read = Some(&read as ReadFile<'_>).filter(|_| file.is_some());
    match (libc, loader) {
        // SAFETY: the loader's file was mapped by us a moment ago, is not relocated, and stays mapped.
        (Some(libc), Some(loader)) => match unsafe { rtld_clib::recognise(&libc, &loader, read) } {
            Ok(glibc) => Ok(Some(Host {
                glibc,
                settings: apply_tunables(&loader, stack, trust),
                initial_vector: AtomicUsize::new(0),
                slots: AtomicPtr::new(core::ptr::null_mut()),
                libc,
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
        let _ = tunables.apply(variables, keep, |mistake| {
            let mut line = Writer::new(file::STDERR);
            mistake.line().iter().for_each(|piece| line.bytes(piece));
        });
    }
    let number = |name: &[u8], default: usize| {
        tunables.value(name).and_then(|value| usize::try_from(value).ok()).unwrap_or(default)
    };
    settings.namespaces = number(b"glibc.rtld.nns", settings.namespaces);
    settings.optional_static_tls = number(b"glibc.rtld.optional_static_tls", settings.optional_static_tls);
    settings.rseq = number(b"glibc.pthread.rseq", 1) != 0;
    settings.processor = tunables.iter().any(|tunable| {
        tunable.is_set() != Ok(false) && tunable.name().is_none_or(|name| name.starts_with(b"glibc.cpu."))
    });
    settings
}

/// Finds out about the processor in the place of the C library's resolver, where nothing special is asked of it.
pub fn publish_processor(host: &Host, minimum_signal_stack: usize) -> Result<(), Error> {
    if !host.settings.processor && minimum_signal_stack != 0 {
        host.glibc.publish_processor(&This).map_err(outside)?;
    }
    Ok(())
}

/// Bytes above the thread pointer that belong to a thread.
pub fn descriptor_size(library: Option<&Host>) -> usize {
    library.map_or(BARE_DESCRIPTOR, |host| host.glibc.descriptor_size())
}

/// What the kernel says and the user wants of restartable sequences; `below` is where the C library's area lies.
pub fn rseq_facts(host: &Host, auxiliary: AuxVector, below: usize) -> RseqFacts {
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

/// The C library's data are not where its version has them.
pub fn outside(_: rtld_clib::OutsideRegion) -> Error {
    Reason::CLibraryLayout.of(b"libc.so.6")
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

/// Where the C library defines a function itself, for who calls it in place of a substitute; 0 if it does not.
pub fn original(name: &'static [u8]) -> usize {
    let reference = Reference { newest: true, ..Reference::to(name, Purpose::Call) };
    let find = |snapshot: &Snapshot| {
        // Releases before 2.34 have a libpthread, whose definitions know of threads, or lead to those of libc.so.6.
        let libraries = [&b"libpthread.so.0"[..], b"libc.so.6"].into_iter();
        let places = libraries.filter_map(|library| by_soname(&snapshot.objects, library));
        let definitions = places.filter_map(|(index, _)| find_in(&snapshot.objects, index, &reference));
        let mut functions = definitions.filter(|found| !found.is_indirect() && is_code(found.object, found.address()));
        functions.next().map(|found| found.address())
    };
    start::world().and_then(|world| threads::read(world, find)).unwrap_or(0)
}

/// Before there is a second thread: has the C library set up its allocator. It does so at its first use, without a lock, since
/// its own loader has used it for the new thread's vector by then; ours has a heap of its own. `mallopt` with a parameter that
/// does not exist sets up and changes nothing, and an allocator of the program's is not touched.
pub fn prepare_allocator() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    let address = original(b"mallopt");
    if address != 0 {
        let function = core::ptr::with_exposed_provenance::<()>(address);
        // SAFETY: the C library's function of this name has this type (mallopt(3)).
        let function = unsafe { core::mem::transmute::<*const (), extern "C" fn(i32, i32) -> i32>(function) };
        let _ = function(0, 0);
    }
}
