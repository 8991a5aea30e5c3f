//! What the C library is asked for: symbols, variables of the environment, the keys and errno that sections need.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

#[link(name = "c")]
unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
    fn secure_getenv(name: *const c_char) -> *const c_char;
    fn __errno_location() -> *mut c_int;
    fn pthread_key_create(key: *mut u32, destructor: *const c_void) -> c_int;
    fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    static program_invocation_name: *const c_char;
}

/// RTLD_DEFAULT, RTLD_NEXT.
pub const DEFAULT: usize = 0;
pub const NEXT: usize = usize::MAX;

/// glibc's dlsym: that of this name may be ours.
static FIND: AtomicUsize = AtomicUsize::new(0);

type Find = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

fn versioned(name: &CStr, version: &CStr) -> usize {
    let next = core::ptr::without_provenance_mut(NEXT);
    // SAFETY: both are strings; the caller is this library, after which glibc looks.
    unsafe { dlvsym(next, name.as_ptr(), version.as_ptr()) }.expose_provenance()
}

/// glibc's own dlsym; 0 if it cannot be found.
pub fn real_find() -> usize {
    let known = FIND.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let found = match versioned(c"dlsym", c"GLIBC_2.34") {
        0 => versioned(c"dlsym", c"GLIBC_2.2.5"),
        found => found,
    };
    FIND.store(found, Ordering::Relaxed);
    found
}

fn find(handle: usize, name: &CStr) -> usize {
    let function = real_find();
    if function == 0 {
        return 0;
    }
    let function = core::ptr::with_exposed_provenance::<()>(function);
    // SAFETY: the C library's function of this name has this type.
    let function = unsafe { core::mem::transmute::<*const (), Find>(function) };
    // SAFETY: a name; the handle is one of the two special ones.
    unsafe { function(core::ptr::without_provenance_mut(handle), name.as_ptr()) }.expose_provenance()
}

/// The next definition after this library's, an old one that is only there for old programs included; 0 for none.
pub fn next(name: &CStr) -> usize {
    match find(NEXT, name) {
        0 => versioned(name, c"GLIBC_2.2.5"),
        found => found,
    }
}

/// The definition that a reference of the program's would get.
pub fn first(name: &CStr) -> usize {
    find(DEFAULT, name)
}

/// Forgets that something was not found: the program may ask what failed last.
pub fn clear_error() {
    // SAFETY: has no arguments.
    unsafe { dlerror() };
}

/// A variable of the environment that may be trusted.
pub fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: a name.
    let value = unsafe { secure_getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a string of the environment; it is read at once.
    Some(unsafe { CStr::from_ptr(value) }.to_bytes())
}

/// How the program was called.
pub fn program() -> &'static [u8] {
    // SAFETY: the C library has set it before any library of the program's ran.
    let name = unsafe { program_invocation_name };
    if name.is_null() {
        return b"libsigblock";
    }
    // SAFETY: a string.
    unsafe { CStr::from_ptr(name) }.to_bytes()
}

/// Functions that nobody replaces, by name; 0 for others.
pub fn imported(name: &[u8]) -> usize {
    match name {
        b"__errno_location" => __errno_location as *const () as usize,
        b"pthread_key_create" => pthread_key_create as *const () as usize,
        b"pthread_setspecific" => pthread_setspecific as *const () as usize,
        _ => 0,
    }
}
