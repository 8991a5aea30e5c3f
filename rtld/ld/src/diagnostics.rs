//! What the process tells about itself: `--list-diagnostics`, and LD_DEBUG=sigblock at exit.

use crate::constants::{NAME, VERSION};
use crate::report::{Writer, error};
use core::cell::UnsafeCell;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};
use rtld_link::lookup_mode::{Lookup, LookupMode};
use rtld_link::object::ObjectSet;
use rtld_link::search::Search;
use rtld_link::text::Bytes;
use rtld_sys::auxv::{AT_PAGESZ, AuxVector};
use rtld_sys::{file, thread};
use sigblock::backend::{self, Complaint, Counts, Wish};

/// LD_DEBUG=sigblock.
static TELL_SECTIONS: AtomicBool = AtomicBool::new(false);

/// Chooses what holds signals; whatever was wished for and cannot be had is told in one line. The main thread's state must
/// be there.
pub fn choose_backend(program: &[u8], wish: Wish<'_>) {
    TELL_SECTIONS.store(wish.count, Ordering::Relaxed);
    if let Some(complaint) = backend::start(wish) {
        complain(program, &complaint);
    }
}

fn complain(program: &[u8], complaint: &Complaint<'_>) {
    error(format_args!("{}: {complaint}\n", Bytes(program)));
}

/// A number, or that nobody counted.
struct Counted(Option<usize>);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(f, "{number}"),
            None => f.write_char('-'),
        }
    }
}

/// LD_DEBUG=statistics: how the names of a start are looked up.
pub fn tell_lookup(program: &[u8], lookup: &Lookup) {
    let Lookup { objects, references, .. } = *lookup;
    let (program, mode) = (Bytes(program), lookup.mode().name());
    let definitions = Counted(lookup.definitions);
    error(format_args!(
        "{program}: lookup: mode={mode} objects={objects} references={references} definitions={definitions}\n"
    ));
}

/// The line of LD_DEBUG=sigblock, if it was asked for.
pub fn tell_sections() {
    if TELL_SECTIONS.load(Ordering::Relaxed) {
        let (name, reason) = (backend::name(backend::current()), backend::reason());
        let Counts { sections, held } = backend::counts();
        error(format_args!("sigblock: backend={name} reason=\"{reason}\" sections={sections} held={held}\n"));
    }
}

/// A thread's state, and behind it the head of its control block, for a process that starts no program.
#[repr(C, align(64))]
struct Bare(UnsafeCell<[u8; 2 * sigblock::AREA.0]>);

// SAFETY: only the process's one thread uses it.
unsafe impl Sync for Bare {}

static BARE: Bare = Bare(UnsafeCell::new([0; 2 * sigblock::AREA.0]));

/// Text in quotes, as glibc writes it: backslashes, quotes and bytes that are not printable are escaped.
struct Quoted<'a>(&'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for &byte in self.0 {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", byte as char)?,
                b' '..=b'~' => f.write_char(byte as char)?,
                _ => write!(f, "\\{byte:03o}")?,
            }
        }
        f.write_char('"')
    }
}

/// `--list-diagnostics`: one line a value, in the form and with the names of glibc where it has them.
pub fn list(program: &[u8], auxiliary: AuxVector, search: &mut Search<'_>, mut wish: Wish<'_>, lookup: LookupMode) {
    wish.count = false;
    start_bare(program, wish);
    let mut out = Writer::new(file::STDOUT);
    let _ = write!(out, "dl_hwcaps_subdirs=\"");
    for (position, level) in search.levels().iter().enumerate() {
        let _ = write!(out, "{}{}", if position == 0 { "" } else { ":" }, level.name());
    }
    let _ = writeln!(out, "\"\ndl_pagesize={:#x}", auxiliary.get(AT_PAGESZ).unwrap_or(0));
    let _ = writeln!(out, "dso.ld=\"{NAME}\"");
    let mut position = 0;
    let shown = search.describe(&ObjectSet::new(), |path, origin| {
        if origin == "system search path" {
            let _ = writeln!(out, "path.system_dirs[{position:#x}]={}", Quoted(path));
            position += 1;
        }
    });
    if shown.is_err() {
        out.bytes(b"path.system_dirs=\"cannot allocate memory\"\n");
    }
    let _ = writeln!(out, "lookup.mode={}", Quoted(lookup.name().as_bytes()));
    let _ = writeln!(out, "sigblock.backend={}", Quoted(backend::name(backend::current()).as_bytes()));
    let _ = writeln!(out, "sigblock.reason={}", Quoted(backend::reason().as_bytes()));
    let _ = writeln!(out, "version.version=\"{VERSION}\"");
}

/// Chooses the back end without a program: the one that a program would get.
fn start_bare(program: &[u8], wish: Wish<'_>) {
    let head = BARE.0.get().cast::<u8>().wrapping_add(sigblock::AREA.0).cast::<usize>();
    let control = head.expose_provenance();
    // SAFETY: the head of the bare control block, which nobody else uses.
    unsafe { head.write(control) };
    // SAFETY: the block's first word is its own address.
    if unsafe { thread::set_pointer(control) }.is_err() {
        return;
    }
    sigblock::set_area(sigblock::AREA.0);
    // SAFETY: the state lies right below the block.
    unsafe { sigblock::prepare(control) };
    if let Some(complaint) = backend::start(wish) {
        complain(program, &complaint);
    }
}
