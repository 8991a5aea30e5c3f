//! Functions of ours that other code calls: in place of the C library's (substitutes), through its table of callbacks, or by
//! name (debuggers). One line each where that is possible; the work is in rtld-runtime.

use crate::constants::NAME;
use crate::failure::cannot_start;
use crate::start::world;
use crate::{callback, dlfcn, exceptions, heap, host, trampoline};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use rtld_clib::substitutes::Substitute;
use rtld_clib::{Callbacks, LinkMap};
use rtld_elf::Sym;
use rtld_link::error::Error;
use rtld_link::object::ObjectIndex;
use rtld_runtime::find_object::FoundObject;
use rtld_runtime::nearest::{self, Information};
use rtld_runtime::world::{Handle, Snapshot, SubstituteTable, World};
use rtld_runtime::{last_error, thread_local, threads};
use rtld_sys::process;

/// Fills the table of our functions: the loader's, and what the back end of sections replaces. What is left out stays the C
/// library's own.
pub fn fill_substitutes(table: &SubstituteTable) {
    for substitute in Substitute::all() {
        if let Some(function) = sigblock::replacement(substitute.name()) {
            table.set(substitute, function);
        }
    }
    let [open, symbol, versioned_symbol, close] = trampoline::dlfcn_entries();
    let ours: [(Substitute, usize); 27] = [
        (Substitute::Open, open),
        (Substitute::OpenInNamespace, dlfcn::open_in_namespace as *const () as usize),
        (Substitute::Symbol, symbol),
        (Substitute::VersionedSymbol, versioned_symbol),
        (Substitute::Close, close),
        (Substitute::Error, dlfcn::error as *const () as usize),
        (Substitute::Address, address as *const () as usize),
        (Substitute::AddressExtended, address_extended as *const () as usize),
        (Substitute::Information, dlfcn::information as *const () as usize),
        (Substitute::Iterate, callback::iterate_entry()),
        (Substitute::FindObject, find_object as *const () as usize),
        (Substitute::TlsGetAddress, tls_get_address as *const () as usize),
        (Substitute::AllocateTls, allocate_tls as *const () as usize),
        (Substitute::AllocateTlsInit, allocate_tls_init as *const () as usize),
        (Substitute::DeallocateTls, deallocate_tls as *const () as usize),
        (Substitute::TlsStaticInformation, tls_static_information as *const () as usize),
        (Substitute::FindDsoForObject, find_dso_for_object as *const () as usize),
        (Substitute::ExceptionCreate, exceptions::create as *const () as usize),
        (Substitute::ExceptionFree, exceptions::free as *const () as usize),
        (Substitute::SignalError, exceptions::signal_error as *const () as usize),
        (Substitute::SignalException, exceptions::signal_exception as *const () as usize),
        (Substitute::CatchException, exceptions::catch_entry()),
        (Substitute::CatchError, exceptions::catch_error as *const () as usize),
        (Substitute::LibcOpen, open),
        (Substitute::LibcSymbol, symbol),
        (Substitute::LibcClose, close),
        (Substitute::RendezvousStructure, (&raw const _r_debug).expose_provenance()),
    ];
    for (substitute, function) in ours {
        table.set(substitute, function);
    }
}

/// What the C library calls through its loader's table.
pub fn callbacks() -> Callbacks {
    Callbacks {
        lookup_symbol: dlfcn::lookup_symbol as *const () as usize,
        open: dlfcn::open_for_library as *const () as usize,
        close: dlfcn::close_for_library as *const () as usize,
        tls_get_addr_soft: tls_get_address_soft as *const () as usize,
        find_object: find_object as *const () as usize,
        catch_error: None,
        error_free: None,
        initialise_static_tls: nothing as *const () as usize,
    }
}

extern "C" fn nothing() {}

/// The world, which exists before any foreign code can call us.
pub fn here() -> &'static World {
    world().unwrap_or_else(|| process::abort())
}

/// In the child of the C library's fork.
pub fn in_child() {
    rtld_runtime::fork::notice(here());
}

/// Ends a process whose object names an initialiser or a finaliser that is none.
pub fn refuse(failure: &Error) -> ! {
    cannot_start(world().map_or(NAME.as_bytes(), |world| world.process.program_name.to_bytes()), failure)
}

// --- Unwinding -------------------------------------------------------------------------------------------------------

extern "C" fn find_object(address: usize, result: *mut FoundObject) -> c_int {
    match threads::read(here(), |snapshot| rtld_runtime::find_object::find_object(snapshot, address)) {
        Some(found) => {
            // SAFETY: the caller passes a structure to fill (dl_find_object(3)).
            unsafe { result.write(found) };
            0
        }
        None => -1,
    }
}

// --- Thread-local storage --------------------------------------------------------------------------------------------

/// `__tls_get_addr`, also from the trampoline for TLS descriptors.
pub extern "C" fn tls_get_address(reference: *const thread_local::Reference) -> usize {
    // SAFETY: compilers pass the address of a pair that relocation filled.
    let reference = unsafe { reference.read() };
    thread_local::address(here(), reference).unwrap_or_else(|| no_thread_local(reference.module))
}

/// There is no way to tell a caller of `__tls_get_addr` that it failed.
#[cold]
fn no_thread_local(module: usize) -> usize {
    crate::report::error(format_args!(
        "{NAME}: cannot allocate memory for thread-local data: ABORT (module {module})\n"
    ));
    process::exit(crate::constants::CANNOT_START)
}

extern "C" fn tls_get_address_soft(handle: *const Handle) -> usize {
    threads::read(here(), |snapshot| {
        let index = snapshot.index_of(handle)?;
        thread_local::block(snapshot, snapshot.tls.id(index))
    })
    .unwrap_or(0)
}

extern "C" fn allocate_tls(control: usize) -> usize {
    let world = here();
    threads::before_another(world);
    heap::prepare();
    host::prepare_allocator();
    let made = control == 0;
    let Some(control) = (if made { thread_local::allocate_block(world) } else { Some(control) }) else { return 0 };
    // SAFETY: glibc calls this for a thread that does not run yet, with memory of the size that we told it.
    unsafe { sigblock::prepare(control) };
    // Before the snapshot is looked at: who publishes a static module later fills its block in every thread of the list.
    let listed = world.threads.add(control).ok();
    let ready = listed.and_then(|()| {
        threads::read(world, |snapshot| {
            // SAFETY: as above.
            unsafe { thread_local::attach(world, snapshot, control) }?;
            // SAFETY: attached above.
            unsafe { thread_local::initialise(snapshot, control) }
        })
    });
    match ready {
        Some(()) => control,
        None => {
            // SAFETY: the thread never ran.
            unsafe { thread_local::release(world, control, made) };
            0
        }
    }
}

extern "C" fn allocate_tls_init(control: usize) -> usize {
    let world = here();
    threads::before_another(world);
    heap::prepare();
    // In the child of a fork it may be a stack of a thread that was in the parent only.
    if control == 0 || world.threads.add(control).is_err() {
        return 0;
    }
    // SAFETY: glibc calls this for a stack whose thread has ended.
    unsafe { last_error::discard(control) };
    // SAFETY: as above.
    unsafe { sigblock::clear(control) };
    // SAFETY: glibc calls this for a stack whose control block went through allocate_tls before.
    let ready = threads::read(world, |snapshot| unsafe { thread_local::initialise(snapshot, control) });
    ready.map_or(0, |()| control)
}

extern "C" fn deallocate_tls(control: usize, block: bool) {
    // SAFETY: glibc calls this when the thread has ended.
    unsafe { last_error::discard(control) };
    // SAFETY: as above.
    unsafe { thread_local::release(here(), control, block) };
}

extern "C" fn tls_static_information(size: *mut usize, alignment: *mut usize) {
    let world = here();
    // SAFETY: the caller passes two words to fill.
    unsafe { size.write(thread_local::static_size(world)) };
    // SAFETY: as above.
    unsafe { alignment.write(world.process.static_tls_alignment) };
}

// --- Objects by address and by name ----------------------------------------------------------------------------------

extern "C" fn find_dso_for_object(address: usize) -> *mut Handle {
    threads::read(here(), |snapshot| {
        snapshot.object_at(address).map_or(core::ptr::null_mut(), |index| snapshot.handle(index))
    })
}

extern "C" fn address(address: usize, result: *mut Information) -> c_int {
    address_extended(address, result, core::ptr::null_mut(), 0)
}

/// `RTLD_DL_SYMENT` and `RTLD_DL_LINKMAP` of `dladdr1`.
const EXTRA_SYMBOL: c_int = 1;
const EXTRA_LINK_MAP: c_int = 2;

extern "C" fn address_extended(address: usize, result: *mut Information, extra: *mut usize, flags: c_int) -> c_int {
    let world = here();
    let found = threads::read(world, |snapshot| {
        let (index, information) = nearest::describe(world, snapshot, address)?;
        let value = match flags {
            EXTRA_LINK_MAP => Some(snapshot.handle(index).expose_provenance()),
            EXTRA_SYMBOL => Some(symbol_entry(snapshot, index, address)),
            _ => None,
        };
        Some((information, value))
    });
    let Some((information, value)) = found else { return 0 };
    // SAFETY: the caller passes a structure to fill (dladdr(3)).
    unsafe { result.write(information) };
    if let Some(value) = value {
        // SAFETY: with one of these flags the caller passes a word to fill.
        unsafe { extra.write(value) };
    }
    1
}

fn symbol_entry(snapshot: &Snapshot, index: ObjectIndex, address: usize) -> usize {
    let object = snapshot.objects.get(index);
    let number = object.and_then(|object| nearest::nearest_symbol(object, address)).map(|(number, _)| number);
    let table = object.and_then(|object| object.dynamic.as_ref()).map(|dynamic| dynamic.symbols.records().as_ptr());
    match (number, table) {
        (Some(number), Some(table)) => table.wrapping_add(number as usize * size_of::<Sym>()).expose_provenance(),
        _ => 0,
    }
}

// --- Debuggers -------------------------------------------------------------------------------------------------------

/// `struct r_debug` of <link.h>.
#[repr(C)]
pub struct Rendezvous {
    version: AtomicI32,
    map: AtomicUsize,
    breakpoint: AtomicUsize,
    state: AtomicI32,
    base: AtomicUsize,
}

/// RT_ADD, RT_DELETE and RT_CONSISTENT.
const ADDING: i32 = 1;
const DELETING: i32 = 2;
const CONSISTENT: i32 = 0;

/// Where debuggers find the list of objects.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static _r_debug: Rendezvous = Rendezvous {
    version: AtomicI32::new(0),
    map: AtomicUsize::new(0),
    breakpoint: AtomicUsize::new(0),
    state: AtomicI32::new(CONSISTENT),
    base: AtomicUsize::new(0),
};

/// Called whenever the list has changed or is about to; debuggers put a breakpoint here.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn _dl_debug_state() {
    // The state is what a debugger looks at when it stops here; the load keeps the function from being merged with others.
    let _ = core::hint::black_box(_r_debug.state.load(Ordering::Relaxed));
}

/// Publishes the list of objects, and where it is in the program's DT_DEBUG.
pub fn publish_debugger(snapshot: &Snapshot, base: usize) {
    let map: *mut LinkMap = snapshot.handle(ObjectIndex(0)).cast();
    _r_debug.version.store(1, Ordering::Relaxed);
    _r_debug.map.store(map.expose_provenance(), Ordering::Relaxed);
    _r_debug.breakpoint.store(_dl_debug_state as *const () as usize, Ordering::Relaxed);
    _r_debug.base.store(base, Ordering::Relaxed);
    _r_debug.state.store(ADDING, Ordering::Release);
    if let Some(program) = snapshot.objects.get(ObjectIndex(0))
        && let Some(vaddr) = program.dynamic.as_ref().and_then(|dynamic| dynamic.debug_slot)
        && program.image().contains(vaddr, 8, rtld_elf::PF_W)
    {
        let slot = core::ptr::with_exposed_provenance_mut::<usize>(program.address(vaddr));
        // SAFETY: the word of DT_DEBUG is in a writable segment of the program and is ours to fill (gABI).
        unsafe { slot.write_unaligned((&raw const _r_debug).expose_provenance()) };
    }
}

/// Says that the list is about to change.
pub fn debugger_is_changing(adding: bool) {
    _r_debug.state.store(if adding { ADDING } else { DELETING }, Ordering::Release);
    _dl_debug_state();
}

/// Says that the list is complete.
pub fn debugger_is_consistent() {
    _r_debug.state.store(CONSISTENT, Ordering::Release);
    _dl_debug_state();
}
