//! What honours the word: chosen once at start, and never changed.

use crate::section::{self, COUNT, MASKS, TELL};
use crate::state::{self, REGISTERED, ThreadState};
use crate::{direct, hold, outside, word};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use linux_raw_sys::errno::EBUSY;
use rtld_sys::signal::{self, How};

/// What honours the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Backend {
    /// A kernel with the fast sigblock patch.
    Kernel,
    /// First-line handlers of ours before those of the program.
    User,
    /// Two calls of sigprocmask(2) a section.
    Sigprocmask,
    /// Nothing: handlers run inside sections.
    Off,
}

static CURRENT: AtomicU8 = AtomicU8::new(Backend::Off as u8);
static REASON: AtomicU8 = AtomicU8::new(Reason::Default as u8);

#[derive(Clone, Copy)]
#[repr(u8)]
enum Reason {
    Default,
    Asked,
    NoKernel,
    NotHad,
}

/// What the user wants, and what we need to know of the C library.
pub struct Wish<'a> {
    /// LD_SIGBLOCK.
    pub backend: Option<&'a [u8]>,
    /// LD_SIGBLOCK_MASK.
    pub mask: Option<&'a [u8]>,
    /// Sections are counted.
    pub count: bool,
    /// The C library's own definition of a name; 0 if it has none.
    pub original: fn(&'static [u8]) -> usize,
}

/// A wish that cannot be fulfilled.
#[derive(Debug)]
pub enum Complaint<'a> {
    /// LD_SIGBLOCK has no such value.
    Unknown(&'a [u8]),
    /// The kernel has no fast sigblock.
    NoKernel,
    /// LD_SIGBLOCK_MASK names something that is no signal.
    Mask(&'a [u8]),
}

impl fmt::Display for Complaint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |f: &mut fmt::Formatter<'_>, name: &str, value: &[u8]| {
            write!(f, "{name}=")?;
            for byte in value.escape_ascii() {
                write!(f, "{}", byte as char)?;
            }
            Ok(())
        };
        match self {
            Complaint::Unknown(value) => {
                text(f, "LD_SIGBLOCK", value)?;
                f.write_str(": expected auto, kernel, user, sigprocmask or off; using auto")
            }
            Complaint::NoKernel => f.write_str("LD_SIGBLOCK=kernel: this kernel has no fast sigblock; using auto"),
            Complaint::Mask(value) => {
                text(f, "LD_SIGBLOCK_MASK", value)?;
                f.write_str(": expected names or numbers of signals, separated by commas; using all")
            }
        }
    }
}

/// SETPTR, UNBLOCK, UNSETPTR and MASK of the patch's prctl (sigblock/linux).
const SET_POINTER: usize = 1;
const UNBLOCK: usize = 2;
const UNSET_POINTER: usize = 3;
const SET_MASK: usize = 4;

/// Chooses the back end. The main thread's state must be there; gives what could not be had.
pub fn start<'a>(wish: Wish<'a>) -> Option<Complaint<'a>> {
    outside::set_original(wish.original);
    let (choice, reason, mut complaint) = match wish.backend {
        None | Some(b"auto" | b"") => (None, Reason::Default, None),
        Some(b"kernel") => (Some(Backend::Kernel), Reason::Asked, None),
        Some(b"user") => (Some(Backend::User), Reason::Asked, None),
        Some(b"sigprocmask") => (Some(Backend::Sigprocmask), Reason::Asked, None),
        Some(b"off") => (Some(Backend::Off), Reason::Asked, None),
        Some(other) => (None, Reason::NotHad, Some(Complaint::Unknown(other))),
    };
    if let Some(list) = wish.mask {
        match hold::parse(list) {
            Some(mask) => drop(hold::set(mask)),
            None => complaint = complaint.or(Some(Complaint::Mask(list))),
        }
    }
    let (backend, reason) = match choice {
        Some(Backend::Kernel) if !has_kernel() => {
            complaint = complaint.or(Some(Complaint::NoKernel));
            (Backend::User, Reason::NotHad)
        }
        Some(backend) => (backend, reason),
        None if has_kernel() => (Backend::Kernel, reason),
        None => (Backend::User, if matches!(reason, Reason::NotHad) { reason } else { Reason::NoKernel }),
    };
    CURRENT.store(backend as u8, Ordering::Relaxed);
    REASON.store(reason as u8, Ordering::Relaxed);
    if matches!(backend, Backend::User | Backend::Kernel) && signal::is_filtered() {
        direct::note_filter();
    }
    if backend == Backend::Kernel {
        // Its own default holds more than we do: SIGABRT and glibc's own signals.
        tell_mask();
    }
    COUNTED.store(wish.count, Ordering::Relaxed);
    complaint
}

/// Sections are counted.
static COUNTED: AtomicBool = AtomicBool::new(false);

/// From here on sections hold signals. Before the program's code runs there is nobody to hold them for, and they cost
/// nothing.
pub fn activate() {
    let tell = match current() {
        Backend::Kernel => TELL,
        Backend::Sigprocmask => TELL | MASKS,
        Backend::User | Backend::Off => 0,
    };
    let count = if COUNTED.load(Ordering::Relaxed) { COUNT } else { 0 };
    section::set_extra(tell | count);
}

/// Takes sigprocmask in place of user mode, where handlers of the program's do not pass by ours after all. Before
/// [`activate`].
pub fn give_up_user_mode() {
    CURRENT.store(Backend::Sigprocmask as u8, Ordering::Relaxed);
    REASON.store(Reason::NotHad as u8, Ordering::Relaxed);
}

/// The back end.
pub fn current() -> Backend {
    match CURRENT.load(Ordering::Relaxed) {
        0 => Backend::Kernel,
        1 => Backend::User,
        2 => Backend::Sigprocmask,
        _ => Backend::Off,
    }
}

/// Its name, as LD_SIGBLOCK has it.
pub fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Kernel => "kernel",
        Backend::User => "user",
        Backend::Sigprocmask => "sigprocmask",
        Backend::Off => "off",
    }
}

/// Why it was chosen.
pub fn reason() -> &'static str {
    match REASON.load(Ordering::Relaxed) {
        0 => "the kernel has it",
        1 => "asked for",
        2 => "the kernel has none",
        _ => "what was asked for cannot be had",
    }
}

/// What was counted.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Outermost sections, if they are counted.
    pub sections: u64,
    /// Signals that waited for a section's end.
    pub held: u64,
}

/// What was counted so far, in all threads.
pub fn counts() -> Counts {
    Counts { sections: section::counted(), held: crate::deliver::held() }
}

/// Registers the main thread's word, if the kernel knows what that is.
fn has_kernel() -> bool {
    register(state::current())
}

/// Registers the calling thread's word with the kernel. Under a filter, which may kill for it, that is not even tried.
pub(crate) fn register(state: &ThreadState) -> bool {
    if direct::is_filtered() {
        return false;
    }
    let word = (&raw const state.word).addr();
    // SAFETY: the word is in the thread's static TLS, which outlives it.
    let done = unsafe { signal::fast_block(SET_POINTER, word) }.is_ok();
    if done {
        state.state.fetch_or(REGISTERED, Ordering::Relaxed);
    }
    done
}

/// Has the kernel forget the calling thread's word. Under a filter it does so when the thread ends.
pub(crate) fn unregister(state: &ThreadState) -> Result<(), rtld_sys::Errno> {
    if direct::is_filtered() {
        return if word::is_raised(&state.word) { Err(rtld_sys::Errno(EBUSY as u16)) } else { Ok(()) };
    }
    // SAFETY: no memory but the registered word is touched.
    unsafe { signal::fast_block(UNSET_POINTER, 0) }?;
    state.state.fetch_and(!REGISTERED, Ordering::Relaxed);
    Ok(())
}

/// Tells the kernel that the section in which a signal came has ended. What it answers does not matter: it may have done
/// so already.
pub(crate) fn unblock(state: &ThreadState) {
    if direct::is_filtered() {
        // The filter may kill for prctl(2). The kernel also looks at the word when a mask is set, be it to what it was.
        state.word.store(0, Ordering::Relaxed);
        let _ = signal::change_mask(How::Block, 0);
        return;
    }
    // SAFETY: no memory of ours but the registered word is touched.
    let _ = unsafe { signal::fast_block(UNBLOCK, 0) };
}

/// Whether it can be changed what sections hold: not where only the kernel can, and a filter may kill for asking it.
pub(crate) fn can_change_hold() -> bool {
    current() != Backend::Kernel || !direct::is_filtered()
}

/// Tells the kernel which signals sections hold.
pub(crate) fn tell_mask() {
    let mask = hold::current();
    // SAFETY: the kernel reads the set.
    let _ = unsafe { signal::fast_block(SET_MASK, (&raw const mask).addr()) };
}
