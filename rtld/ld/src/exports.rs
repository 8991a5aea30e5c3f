//! Functions of ours that other code calls: in place of the C library's (substitutes), through its table of callbacks, or by
//! name (debuggers). One line each where that is possible; the work is in rtld-runtime.

use crate::start::world;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use rtld_clib::substitutes::{COUNT, Substitute};
use rtld_clib::{Callbacks, LinkMap};
use rtld_elf::{Sym, gnu_hash};
use rtld_link::lookup::{Purpose, Reference, WantedVersion, find_in};
use rtld_link::object::ObjectIndex;
use rtld_runtime::find_object::FoundObject;
use rtld_runtime::iterate::{self, ProgramHeaderInfo};
use rtld_runtime::nearest::{self, Information};
use rtld_runtime::thread_local;
use rtld_runtime::world::{Handle, World};
use rtld_sys::{process, thread};

/// Addresses of our functions, by substitute; 0 keeps the C library's own.
pub fn substitutes() -> [usize; COUNT] {
    let ours: [(Substitute, usize); 18] = [
        (Substitute::Open, open as *const () as usize),
        (Substitute::OpenInNamespace, open_in_namespace as *const () as usize),
        (Substitute::Symbol, symbol as *const () as usize),
        (Substitute::VersionedSymbol, symbol as *const () as usize),
        (Substitute::Close, close as *const () as usize),
        (Substitute::Error, error as *const () as usize),
        (Substitute::Address, address as *const () as usize),
        (Substitute::AddressExtended, address_extended as *const () as usize),
        (Substitute::Information, information as *const () as usize),
        (Substitute::Iterate, iterate as *const () as usize),
        (Substitute::FindObject, find_object as *const () as usize),
        (Substitute::TlsGetAddress, tls_get_address as *const () as usize),
        (Substitute::AllocateTls, allocate_tls as *const () as usize),
        (Substitute::AllocateTlsInit, allocate_tls_init as *const () as usize),
        (Substitute::DeallocateTls, deallocate_tls as *const () as usize),
        (Substitute::TlsStaticInformation, tls_static_information as *const () as usize),
        (Substitute::FindDsoForObject, find_dso_for_object as *const () as usize),
        (Substitute::RendezvousStructure, (&raw const _r_debug).expose_provenance()),
    ];
    let mut table = [0; COUNT];
    for (substitute, function) in ours {
        if let Some(slot) = table.get_mut(substitute as usize) {
            *slot = function;
        }
    }
    table
}

/// What the C library calls through its loader's table.
pub fn callbacks() -> Callbacks {
    Callbacks {
        lookup_symbol: lookup_symbol as *const () as usize,
        open: open_for_library as *const () as usize,
        close: close as *const () as usize,
        tls_get_addr_soft: tls_get_address_soft as *const () as usize,
        find_object: find_object as *const () as usize,
        catch_error: None,
        error_free: None,
        initialise_static_tls: nothing as *const () as usize,
    }
}

extern "C" fn nothing() {}

/// The world, which exists before any foreign code can call us.
fn here() -> &'static World {
    world().unwrap_or_else(|| process::abort())
}

// --- Unwinding -------------------------------------------------------------------------------------------------------

extern "C" fn find_object(address: usize, result: *mut FoundObject) -> c_int {
    match rtld_runtime::find_object::find_object(here(), address) {
        Some(found) => {
            // SAFETY: the caller passes a structure to fill (dl_find_object(3)).
            unsafe { result.write(found) };
            0
        }
        None => -1,
    }
}

type Callback = extern "C" fn(*mut ProgramHeaderInfo, usize, *mut c_void) -> c_int;

extern "C" fn iterate(callback: Callback, data: *mut c_void) -> c_int {
    let world = here();
    let mut index = ObjectIndex(0);
    // SAFETY: threads of this process have thread pointers.
    while let Some(mut information) = unsafe { iterate::info(world, index) } {
        let result = callback(&mut information, size_of::<ProgramHeaderInfo>(), data);
        if result != 0 {
            return result;
        }
        index = ObjectIndex(index.0 + 1);
    }
    0
}

// --- Thread-local storage --------------------------------------------------------------------------------------------

extern "C" fn tls_get_address(reference: *const thread_local::Reference) -> usize {
    // SAFETY: compilers pass the address of a pair that relocation filled.
    let reference = unsafe { reference.read() };
    // SAFETY: the thread pointer is set, and the module id comes from relocation.
    unsafe { thread_local::address(reference) }.unwrap_or_else(|| process::abort())
}

extern "C" fn tls_get_address_soft(handle: *const Handle) -> usize {
    match here().tls.id(index_of(handle)) {
        0 => 0,
        // SAFETY: the thread pointer is set.
        module => unsafe { thread_local::block(module as usize) }.unwrap_or(0),
    }
}

extern "C" fn allocate_tls(control: usize) -> usize {
    let world = here();
    let made = control == 0;
    let Some(control) = (if made { thread_local::allocate_block(world) } else { Some(control) }) else {
        return 0;
    };
    // SAFETY: glibc calls this for a thread that does not run yet, with memory of the size that we told it.
    let attached = unsafe { thread_local::attach(world, control) };
    // SAFETY: attached above.
    match attached.and_then(|()| unsafe { thread_local::initialise(world, control) }) {
        Some(()) => control,
        None => {
            // SAFETY: the thread never ran.
            unsafe { thread_local::release(world, control, made) };
            0
        }
    }
}

extern "C" fn allocate_tls_init(control: usize) -> usize {
    if control == 0 {
        return 0;
    }
    // SAFETY: glibc calls this for a stack whose control block went through allocate_tls before.
    match unsafe { thread_local::initialise(here(), control) } {
        Some(()) => control,
        None => 0,
    }
}

extern "C" fn deallocate_tls(control: usize, block: bool) {
    // SAFETY: glibc calls this when the thread has ended.
    unsafe { thread_local::release(here(), control, block) };
}

extern "C" fn tls_static_information(size: *mut usize, alignment: *mut usize) {
    let world = here();
    // SAFETY: the caller passes two words to fill.
    unsafe { size.write(thread_local::static_size(world)) };
    // SAFETY: as above.
    unsafe { alignment.write(world.tls.alignment) };
}

// --- Objects by address and by name ----------------------------------------------------------------------------------

fn index_of(handle: *const Handle) -> ObjectIndex {
    // SAFETY: the C library hands back link maps that it got from us.
    unsafe { (*handle).index }
}

extern "C" fn find_dso_for_object(address: usize) -> *mut Handle {
    let world = here();
    world.object_at(address).map_or(core::ptr::null_mut(), |index| world.handle(index))
}

extern "C" fn address(address: usize, result: *mut Information) -> c_int {
    address_extended(address, result, core::ptr::null_mut(), 0)
}

/// `RTLD_DL_SYMENT` and `RTLD_DL_LINKMAP` of `dladdr1`.
const EXTRA_SYMBOL: c_int = 1;
const EXTRA_LINK_MAP: c_int = 2;

extern "C" fn address_extended(address: usize, result: *mut Information, extra: *mut usize, flags: c_int) -> c_int {
    let world = here();
    let Some((index, information)) = nearest::describe(world, address) else {
        return 0;
    };
    // SAFETY: the caller passes a structure to fill (dladdr(3)).
    unsafe { result.write(information) };
    let value = match flags {
        EXTRA_LINK_MAP => world.handle(index).expose_provenance(),
        EXTRA_SYMBOL => symbol_entry(world, index, address),
        _ => return 1,
    };
    // SAFETY: with one of these flags the caller passes a word to fill.
    unsafe { extra.write(value) };
    1
}

fn symbol_entry(world: &World, index: ObjectIndex, address: usize) -> usize {
    let object = world.objects.get(index);
    let number = object.and_then(|object| nearest::nearest_symbol(object, address)).map(|(number, _)| number);
    let table = object.and_then(|object| object.dynamic.as_ref()).map(|dynamic| dynamic.symbols.records().as_ptr());
    match (number, table) {
        (Some(number), Some(table)) => table.wrapping_add(number as usize * size_of::<Sym>()).expose_provenance(),
        _ => 0,
    }
}

/// `struct r_found_version` of glibc.
#[repr(C)]
struct FoundVersion {
    name: *const c_char,
    hash: u32,
    hidden: c_int,
    file: *const c_char,
}

/// `_dl_lookup_symbol_x`: glibc asks it for functions of the vDSO only, in the vDSO's own scope.
extern "C" fn lookup_symbol(
    name: *const c_char,
    handle: *mut Handle,
    result: *mut *const Sym,
    _scope: usize,
    version: *const FoundVersion,
) -> *mut Handle {
    let world = here();
    // SAFETY: glibc passes a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    // SAFETY: null or a version structure.
    let version = unsafe { version.as_ref() }.map(|version| {
        // SAFETY: the structure holds a C string.
        let name = unsafe { CStr::from_ptr(version.name) }.to_bytes();
        WantedVersion { name, hash: version.hash, exact: version.hidden != 0 }
    });
    let hash = gnu_hash(name);
    let reference = Reference { name, hash, version, purpose: Purpose::Call, newest: false };
    let found = find_in(&world.objects, index_of(handle), &reference).and_then(|definition| {
        let table = definition.object.dynamic.as_ref()?.symbols.records().as_ptr();
        Some(table.wrapping_add(definition.number as usize * size_of::<Sym>()).cast::<Sym>())
    });
    // SAFETY: the caller passes a pointer to fill.
    unsafe { result.write(found.unwrap_or(core::ptr::null())) };
    if found.is_some() { handle } else { core::ptr::null_mut() }
}

// --- Loading at run time: not yet ------------------------------------------------------------------------------------

const NO_OPEN: &CStr = c"ld-elf.so.1: loading libraries at run time is not supported yet";
const NO_SYMBOL: &CStr = c"ld-elf.so.1: looking symbols up at run time is not supported yet";

/// The calling thread's word for its last error: the first of the loader's own area.
fn error_word() -> &'static AtomicUsize {
    // SAFETY: the thread pointer is set.
    let control = unsafe { thread::pointer() };
    let word = core::ptr::with_exposed_provenance::<AtomicUsize>(control.wrapping_sub(here().tls.own));
    // SAFETY: the area is aligned to a cache line and lives as long as the calling thread.
    unsafe { &*word }
}

fn refuse(reason: &'static CStr) {
    error_word().store(reason.as_ptr().expose_provenance(), Ordering::Relaxed);
}

extern "C" fn error() -> *const c_char {
    core::ptr::with_exposed_provenance(error_word().swap(0, Ordering::Relaxed))
}

extern "C" fn open(file: *const c_char, _mode: c_int) -> *mut Handle {
    if file.is_null() {
        return here().handle(ObjectIndex(0));
    }
    refuse(NO_OPEN);
    core::ptr::null_mut()
}

extern "C" fn open_in_namespace(_namespace: isize, file: *const c_char, mode: c_int) -> *mut Handle {
    open(file, mode)
}

/// The C library's own users get an error by unwinding its frame of `_dl_catch_error`; without that function of ours
/// there is none yet, so they get no handle, which all of them check.
extern "C" fn open_for_library() -> *mut Handle {
    core::ptr::null_mut()
}

extern "C" fn symbol() -> usize {
    refuse(NO_SYMBOL);
    0
}

extern "C" fn close() -> c_int {
    0
}

extern "C" fn information() -> c_int {
    refuse(NO_SYMBOL);
    -1
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

/// RT_ADD and RT_CONSISTENT.
const ADDING: i32 = 1;
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
pub fn publish_debugger(world: &World, base: usize) {
    let map: *mut LinkMap = world.handle(ObjectIndex(0)).cast();
    _r_debug.version.store(1, Ordering::Relaxed);
    _r_debug.map.store(map.expose_provenance(), Ordering::Relaxed);
    _r_debug.breakpoint.store(_dl_debug_state as *const () as usize, Ordering::Relaxed);
    _r_debug.base.store(base, Ordering::Relaxed);
    _r_debug.state.store(ADDING, Ordering::Release);
    if let Some(program) = world.objects.get(ObjectIndex(0))
        && let Some(vaddr) = program.dynamic.as_ref().and_then(|dynamic| dynamic.debug_slot)
        && program.image().contains(vaddr, 8, rtld_elf::PF_W)
    {
        let slot = core::ptr::with_exposed_provenance_mut::<usize>(program.address(vaddr));
        // SAFETY: the word of DT_DEBUG is in a writable segment of the program and is ours to fill (gABI).
        unsafe { slot.write_unaligned((&raw const _r_debug).expose_provenance()) };
    }
    // No stop here: a debugger would look into a C library that is not relocated yet, and give up on its threads.
}

/// Says that the list is complete.
pub fn debugger_is_consistent() {
    _r_debug.state.store(CONSISTENT, Ordering::Release);
    _dl_debug_state();
}
