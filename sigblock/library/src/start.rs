//! Where the exported names lead: decided once, by the constructor, or before it by whoever calls first. Under a loader that
//! has fast sigblock itself everything leads there.

use crate::exports::{BEFORE_REPLACED, COUNT, ENTRIES, INTERFACE, NAMES, Name, TABLE};
use crate::report::{self, Text};
use crate::{area, brackets, system};
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use rtld_sys::{lock, thread};
use sigblock::api;
use sigblock::backend::{self, Backend, Wish};

/// The definitions after ours; 0 for none.
static NEXT: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];

/// Who fills the tables: nobody yet, a thread by its id, or DONE.
static FILLER: AtomicU32 = AtomicU32::new(0);
const DONE: u32 = u32::MAX;
/// A line is asked for at exit.
static TELL: AtomicBool = AtomicBool::new(false);

/// Where a name leads.
pub fn address(index: usize) -> usize {
    let me = thread::id() as u32;
    loop {
        match FILLER.compare_exchange(0, me, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {
                fill();
                FILLER.store(DONE, Ordering::Release);
                lock::wake_all(&FILLER);
            }
            Err(DONE) => break,
            // The C library has come back to us, or a handler has interrupted us.
            Err(filler) if filler == me => return or_missing(NAMES.get(index).map_or(0, |name| system::next(name))),
            Err(filler) => lock::wait_while(&FILLER, filler),
        }
    }
    TABLE.get(index).map_or(0, |entry| entry.load(Ordering::Relaxed).expose_provenance())
}

/// The definition after ours; 0 for none.
pub fn next(index: usize) -> usize {
    NEXT.get(index).map_or(0, |next| next.load(Ordering::Relaxed))
}

/// What a symbol is to the program: ours in place of that which it stands for.
pub fn in_place_of(name: &[u8], found: usize) -> usize {
    let position = NAMES.iter().position(|known| known.to_bytes() == name);
    match position {
        Some(index) if found != 0 && found == next(index) => {
            ENTRIES.get(index).map_or(found, |entry| *entry as *const () as usize)
        }
        _ => found,
    }
}

fn fill() {
    for (name, next) in NAMES.iter().zip(&NEXT) {
        next.store(system::next(name), Ordering::Relaxed);
    }
    let has_sections = next(Name::sigblock_word as usize) != 0;
    if !has_sections {
        begin();
    }
    for (index, entry) in TABLE.iter().enumerate() {
        let target = if has_sections { next(index) } else { ours(index).unwrap_or_else(|| next(index)) };
        entry.store(core::ptr::with_exposed_provenance_mut(or_missing(target)), Ordering::Relaxed);
    }
    system::clear_error();
}

/// Makes sections possible.
fn begin() {
    sigblock::set_area(area::distance());
    let tell = system::variable(c"SIGBLOCK_STATISTICS").is_some_and(|value| value == b"1");
    TELL.store(tell, Ordering::Relaxed);
    let asked = system::variable(c"LD_SIGBLOCK");
    let mask = system::variable(c"LD_SIGBLOCK_MASK");
    let complaint = backend::start(Wish { backend: asked, mask, count: tell, original });
    backend::activate();
    if let Some(complaint) = complaint {
        report::line(format_args!("{}: {complaint}\n", Text(system::program())));
    }
    if backend::current() == Backend::User && !is_in_front() {
        // The program's references to sigaction(2) were bound before we came: handlers would run inside sections.
        backend::give_up_user_mode();
        if asked == Some(b"user") {
            let program = Text(system::program());
            report::line(format_args!("{program}: LD_SIGBLOCK=user: libsigblock came too late; using sigprocmask\n"));
        }
    }
    backend::activate();
}

/// Whether the program's references get our definitions.
fn is_in_front() -> bool {
    let index = Name::sigaction as usize;
    let (Some(name), Some(entry)) = (NAMES.get(index), ENTRIES.get(index)) else { return false };
    system::first(name) == *entry as *const () as usize
}

/// The C library's definition of a name.
fn original(name: &'static [u8]) -> usize {
    match NAMES.iter().position(|known| known.to_bytes() == name) {
        Some(index) => next(index),
        None => system::imported(name),
    }
}

/// What of ours stands for a name; None for the C library's own.
fn ours(index: usize) -> Option<usize> {
    let name: &CStr = NAMES.get(index)?;
    if index >= BEFORE_REPLACED {
        return sigblock::replacement(name.to_bytes());
    }
    if index < INTERFACE.0 {
        return brackets::entry(index).filter(|_| next(index) != 0);
    }
    Some(match name.to_bytes() {
        b"sigblock_enter" => api::sigblock_enter as *const () as usize,
        b"sigblock_leave" => api::sigblock_leave as *const () as usize,
        b"sigblock_word" => api::sigblock_word as *const () as usize,
        b"sigblock_backend" => api::sigblock_backend as *const () as usize,
        b"sigblock_mask" => api::sigblock_mask as *const () as usize,
        b"sigblock_counts" => api::sigblock_counts as *const () as usize,
        b"sigblock_register" => api::sigblock_register as *const () as usize,
        _ => api::sigblock_release as *const () as usize,
    })
}

fn or_missing(address: usize) -> usize {
    if address == 0 { missing as *const () as usize } else { address }
}

/// In place of a function that this C library does not have: ENOSYS.
extern "C" fn missing() -> i32 {
    let place = core::ptr::with_exposed_provenance::<()>(system::imported(b"__errno_location"));
    // SAFETY: the C library's function gives the address of the calling thread's errno.
    let place = unsafe { core::mem::transmute::<*const (), extern "C" fn() -> *mut i32>(place) }();
    // SAFETY: as above.
    unsafe { place.write(38) };
    -1
}

extern "C" fn construct() {
    address(0);
}

extern "C" fn destruct() {
    if TELL.load(Ordering::Relaxed) {
        let counts = backend::counts();
        let (name, reason) = (backend::name(backend::current()), backend::reason());
        let (sections, held) = (counts.sections, counts.held);
        report::line(format_args!("sigblock: backend={name} reason=\"{reason}\" sections={sections} held={held}\n"));
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destruct;
