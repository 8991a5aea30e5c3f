//! <dlfcn.h> as programs and the C library's own code call it. Arguments are turned into what rtld-runtime takes, failures
//! into the calling thread's dlerror text or, for the C library, into its exceptions.

use crate::exceptions::{self, Exception};
use crate::exports::{here, refuse};
use crate::{heap, host};
use core::ffi::{CStr, c_char, c_int};
use rtld_elf::symbol::SymbolBinding;
use rtld_elf::{SymbolView, gnu_hash};
use rtld_link::lookup::{Purpose, Reference, WantedVersion};
use rtld_runtime::close::NotOpen;
use rtld_runtime::open::{self as opening, Failure};
use rtld_runtime::symbol::{self as lookup, Where};
use rtld_runtime::world::Handle;
use rtld_runtime::{call, close as closing, information as asking, initialise, last_error, threads};
use rtld_sys::process;

/// LM_ID_BASE.
const BASE_NAMESPACE: isize = 0;

fn call_resolver(resolver: usize) -> usize {
    // SAFETY: lookup found it as the resolver of an indirect function.
    unsafe { call::resolver(resolver) }
}

fn text<'a>(pointer: *const c_char) -> &'a [u8] {
    if pointer.is_null() {
        return b"";
    }
    // SAFETY: callers of <dlfcn.h> pass C strings.
    unsafe { CStr::from_ptr(pointer) }.to_bytes()
}

/// `dlopen`, with the caller's return address.
pub extern "C" fn open(file: *const c_char, mode: c_int, caller: usize) -> *mut Handle {
    let world = here();
    last_error::clear();
    let caller = initialise::caller_of(world, caller);
    match opening::open(world, text(file), mode as u32, caller, refuse) {
        Ok(handle) => handle,
        Err(Failure::NotLoaded) => core::ptr::null_mut(),
        Err(failure) => {
            last_error::set(format_args!("{failure}"));
            core::ptr::null_mut()
        }
    }
}

/// `dlmopen`: only the base name space, for now.
pub extern "C" fn open_in_namespace(namespace: isize, file: *const c_char, mode: c_int) -> *mut Handle {
    if namespace != BASE_NAMESPACE {
        last_error::set(format_args!("dlmopen: name spaces other than LM_ID_BASE are not supported by ld-elf.so.1"));
        return core::ptr::null_mut();
    }
    open(file, mode, 0)
}

/// `dlclose`.
pub extern "C" fn close(handle: *mut Handle) -> c_int {
    let world = here();
    last_error::clear();
    heap::settle();
    match closing::close(world, handle, refuse) {
        Ok(()) => 0,
        Err(NotOpen { path }) if path.is_empty() => {
            last_error::set(format_args!("shared object not open"));
            -1
        }
        Err(NotOpen { path }) => {
            last_error::set(format_args!("{path}: shared object not open"));
            -1
        }
    }
}

/// `dlerror`.
pub extern "C" fn error() -> *const c_char {
    last_error::take()
}

fn place(handle: usize) -> Where {
    match handle {
        0 => Where::Default,
        usize::MAX => Where::Next,
        handle => Where::Handle(core::ptr::with_exposed_provenance(handle)),
    }
}

fn find(handle: usize, name: *const c_char, version: Option<&[u8]>, caller: usize) -> usize {
    let world = here();
    last_error::clear();
    let place = place(handle);
    // A handle says where to look, whoever calls.
    let caller = if matches!(place, Where::Handle(_)) { caller } else { initialise::caller_of(world, caller) };
    match lookup::find(world, place, text(name), version, caller, &call_resolver) {
        Ok(address) => address,
        Err(failure) => {
            last_error::set(format_args!("{failure}"));
            0
        }
    }
}

/// `dlsym`, with the caller's return address.
pub extern "C" fn symbol(handle: usize, name: *const c_char, caller: usize) -> usize {
    find(handle, name, None, caller)
}

/// `dlvsym`, with the caller's return address.
pub extern "C" fn versioned_symbol(handle: usize, name: *const c_char, version: *const c_char, caller: usize) -> usize {
    find(handle, name, Some(text(version)), caller)
}

/// `dlinfo`.
pub extern "C" fn information(handle: *mut Handle, request: c_int, argument: *mut usize) -> c_int {
    let world = here();
    last_error::clear();
    // SAFETY: the caller passes what the request asks for (dlinfo(3)).
    match unsafe { asking::answer(world, handle, request, argument) } {
        Ok(result) => result,
        Err(failure) => {
            let message = match failure {
                asking::Failure::BadHandle => "invalid handle",
                asking::Failure::Unsupported => "unsupported dlinfo request",
                asking::Failure::Unknown => "cannot allocate memory",
            };
            last_error::set(format_args!("{message}"));
            -1
        }
    }
}

// --- The C library's own users ---------------------------------------------------------------------------------------

/// Ends a call of the C library's with the thread's last error: control goes back to where it catches those. No frame of ours
/// on the way holds anything that would have to be given back. A C library that has the functions for that itself catches by
/// them, another one by ours.
fn raise() -> ! {
    let text = last_error::peek();
    let mut exception = Exception { object: c"".as_ptr(), message: text.as_ptr(), buffer: core::ptr::null_mut() };
    let own = host::original(b"_dl_signal_exception");
    if own == 0 {
        exceptions::signal_exception(0, &raw mut exception, core::ptr::null());
    }
    let pointer = core::ptr::with_exposed_provenance::<()>(own);
    // SAFETY: glibc's `void _dl_signal_exception (int, struct dl_exception *, const char *)`, found by that name.
    let signal =
        unsafe { core::mem::transmute::<*const (), extern "C" fn(c_int, *mut Exception, *const c_char)>(pointer) };
    signal(0, &raw mut exception, core::ptr::null());
    process::abort()
}

/// `_dl_open` of `_rtld_global_ro`.
pub extern "C" fn open_for_library(file: *const c_char, mode: c_int, caller: usize) -> *mut Handle {
    // Bits above these are glibc's own notes on who calls.
    let mode = mode as u32 & 0xffff;
    match opening::open(here(), text(file), mode, caller, refuse) {
        Ok(handle) => handle,
        Err(Failure::NotLoaded) => core::ptr::null_mut(),
        Err(failure) => {
            last_error::set(format_args!("{failure}"));
            // What is left by a long jump is not dropped.
            drop(failure);
            raise()
        }
    }
}

/// `_dl_close` of `_rtld_global_ro`.
pub extern "C" fn close_for_library(handle: *mut Handle) {
    heap::settle();
    if closing::close(here(), handle, refuse).is_err() {
        last_error::set(format_args!("shared object not open"));
        raise();
    }
}

/// `struct r_found_version` of glibc.
#[repr(C)]
pub struct FoundVersion {
    name: *const c_char,
    hash: u32,
    hidden: c_int,
    file: *const c_char,
}

/// `_dl_lookup_symbol_x`: the C library's `dlsym` for what it opens itself, and its questions to the vDSO.
pub extern "C" fn lookup_symbol(
    name: *const c_char,
    handle: *mut Handle,
    result: *mut *const rtld_elf::Sym,
    _scope: usize,
    version: *const FoundVersion,
) -> *mut Handle {
    let world = here();
    let name = text(name);
    // SAFETY: null or a version structure.
    let version = unsafe { version.as_ref() }.map(|version| WantedVersion {
        name: text(version.name),
        hash: version.hash,
        exact: version.hidden != 0,
    });
    let hash = gnu_hash(name);
    let reference = Reference { name, hash, version, purpose: Purpose::Call, newest: false };
    let found = threads::read(world, |snapshot| {
        let (index, entry) = lookup::entry(snapshot, snapshot.index_of(handle)?, &reference)?;
        Some((snapshot.handle(index), entry))
    });
    // SAFETY: the caller passes a pointer to fill; it holds null or the symbol of a reference.
    let own = unsafe { result.read() };
    let (holder, entry) = found.unwrap_or((core::ptr::null_mut(), 0));
    // SAFETY: as above.
    unsafe { result.write(core::ptr::with_exposed_provenance(entry)) };
    // SAFETY: null or a symbol entry.
    let weak = unsafe { own.as_ref() }.is_some_and(|own| own.binding() == SymbolBinding::Weak);
    if holder.is_null() && !weak {
        let name = rtld_link::text::Bytes(name);
        last_error::set(format_args!("undefined symbol: {name}"));
        raise();
    }
    holder
}
