//! The program to start: taken over from the kernel, or mapped by us when we were started directly.

use crate::stack::InitialStack;
use core::ffi::CStr;
use goblin::elf64::program_header::{PT_LOAD, PT_PHDR, ProgramHeader};
use rtld_elf::{Dynamic, Image, Table};
use rtld_link::error::Reason;
use rtld_link::map::{self, Mapping, Pages, Place};
use rtld_link::object::{Object, Role};
use rtld_link::open;
use rtld_link::text::{Text, base_name};
use rtld_sys::auxv::{AT_BASE, AT_ENTRY, AT_EXECFN, AT_PHDR, AT_PHNUM, AT_SYSINFO_EHDR, AuxVector};
use rtld_sys::{file, process};

/// How we were started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WayIn {
    /// The kernel mapped a program that names us as its interpreter.
    Interpreter,
    /// We were named on the command line.
    Direct,
}

/// How we were started: the kernel's entry point is the program's, which is ours only if we are the program.
pub fn way_in(auxiliary: AuxVector, own_entry: usize) -> WayIn {
    if auxiliary.get(AT_ENTRY) == Some(own_entry) { WayIn::Direct } else { WayIn::Interpreter }
}

/// The first byte of this image and its ELF header's size: what a file that is ourselves begins with.
pub const HEADER_SIZE: usize = 64;

/// This image's ELF header.
pub fn own_header(base: usize) -> &'static [u8] {
    let first = core::ptr::with_exposed_provenance::<u8>(base);
    // SAFETY: our first segment begins with the ELF header and is never written.
    unsafe { core::slice::from_raw_parts(first, HEADER_SIZE) }
}

/// The object that begins with an ELF header in memory.
///
/// # Safety
/// There must be one, mapped and staying so.
unsafe fn with_header(header: usize, pages: Pages) -> Result<Mapping, Reason> {
    let bytes = core::ptr::with_exposed_provenance::<u8>(header);
    // SAFETY: the caller's promise.
    let bytes = unsafe { core::slice::from_raw_parts(bytes, HEADER_SIZE) };
    let checked = rtld_elf::header::check(bytes, None)?;
    let first = core::ptr::with_exposed_provenance::<u8>(header.wrapping_add(checked.program_header_offset as usize));
    // SAFETY: the first segment of such objects holds the program headers (the kernel and our linker see to it).
    let headers = unsafe { Table::from_raw(first, usize::from(checked.program_header_count)) };
    // SAFETY: the caller's promise.
    let mut mapping = unsafe { map::adopt(headers, 0, Place::FirstPage(header), pages) }?;
    mapping.entry = checked.entry;
    Ok(mapping)
}

/// This image as an object.
pub fn ourselves(base: usize, pages: Pages) -> Result<Mapping, Reason> {
    // SAFETY: base is where our ELF header is.
    unsafe { with_header(base, pages) }
}

/// The kernel's vDSO, where there is one.
pub fn vdso(auxiliary: AuxVector, pages: Pages) -> Result<Option<Object>, Reason> {
    let Some(header) = auxiliary.get(AT_SYSINFO_EHDR).filter(|&header| header != 0) else {
        return Ok(None);
    };
    // SAFETY: the kernel maps the vDSO there for the life of the process.
    let mapping = unsafe { with_header(header, pages) }?;
    let mut object = Object::new(Role::Vdso, Text::empty(), mapping)?;
    object.path = Text::new(object.soname().unwrap_or(b"linux-vdso.so.1"))?;
    Ok(Some(object))
}

/// The program that the kernel has mapped.
pub fn adopt(auxiliary: AuxVector, pages: Pages) -> Result<Object, Reason> {
    let address = auxiliary.get(AT_PHDR).unwrap_or(0);
    let first = core::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: AT_PHDR and AT_PHNUM describe the program's headers in memory.
    let headers = unsafe { Table::<ProgramHeader>::from_raw(first, auxiliary.get(AT_PHNUM).unwrap_or(0)) };
    let place = place_of(headers, address, pages);
    // SAFETY: the kernel mapped the program by these headers.
    let mapping = unsafe { map::adopt(headers, auxiliary.get(AT_ENTRY).unwrap_or(0), place, pages) }?;
    map::prepare_small(&mapping, pages.at_start());
    Object::new(Role::Program, Text::empty(), mapping)
}

/// Where the program is: PT_PHDR says what address the headers have in the file. Without one, a program is at the
/// addresses of its file if its headers are inside a segment there, and else begins with the page of its headers.
fn place_of(headers: Table<'_, ProgramHeader>, address: usize, pages: Pages) -> Place {
    if let Some(own) = headers.iter().find(|header| header.p_type == PT_PHDR) {
        return Place::Bias(address.wrapping_sub(own.p_vaddr as usize));
    }
    let inside = |load: &ProgramHeader| {
        load.p_type == PT_LOAD && (address as u64).checked_sub(load.p_vaddr).is_some_and(|at| at < load.p_memsz)
    };
    if headers.iter().any(|load| inside(&load)) { Place::Bias(0) } else { Place::FirstPage(pages.down(address)) }
}

/// Maps a program by its path, as the kernel would. `base` is where we are: we are no program.
pub fn open(path: &'static CStr, base: usize, pages: Pages) -> Result<Object, Reason> {
    let candidate = open::open(Text::new(path.to_bytes())?).map_err(|refusal| refusal.error(b"").reason)?;
    if candidate.prefix.starts_with(own_header(base)) {
        return Err(Reason::Ourselves);
    }
    let mapping = map::map_file(&candidate.file, &candidate.status, &candidate.prefix, pages.at_start(), None)?;
    let mut object = Object::new(Role::Program, Text::empty(), mapping)?;
    object.identity = Some(candidate.identity());
    object.real_path = real_path(candidate.file.descriptor())?;
    Ok(object)
}

/// The absolute path of an open file, symbolic links resolved; empty where /proc does not tell.
#[inline(never)]
fn real_path(descriptor: i32) -> Result<Text, Reason> {
    let mut digits = [0_u8; 10];
    let mut start = digits.len();
    let mut rest = descriptor.unsigned_abs();
    loop {
        start -= 1;
        if let Some(place) = digits.get_mut(start) {
            *place = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let link = Text::join(&[b"/proc/self/fd/", digits.get(start..).unwrap_or_default()])?;
    let mut buffer = [0; 4096];
    let path = file::read_link(link.as_c_str(), &mut buffer).unwrap_or_default();
    let absolute = if path.first() == Some(&b'/') { path } else { b"" };
    Ok(Text::new(absolute)?)
}

/// Makes the process look as if the kernel had started the program: the auxiliary vector and the thread's name. What
/// only the kernel can change (/proc/self/exe) stays.
pub fn disguise(stack: InitialStack, object: &Object, path: &'static CStr, base: usize, is_static: bool) {
    let auxiliary = stack.auxiliary();
    auxiliary.set(AT_PHDR, object.mapping.headers.as_ptr().expose_provenance());
    auxiliary.set(AT_PHNUM, object.mapping.headers.len());
    auxiliary.set(AT_ENTRY, object.address(object.mapping.entry));
    auxiliary.set(AT_BASE, if is_static { 0 } else { base });
    auxiliary.set(AT_EXECFN, path.as_ptr().expose_provenance());
    let name = base_name(path.to_bytes());
    let tail = path.to_bytes_with_nul().get(path.to_bytes().len() - name.len()..);
    if let Some(name) = tail.and_then(|tail| CStr::from_bytes_with_nul(tail).ok()) {
        // A process without its name is still the right process.
        let _ = process::set_name(name);
    }
}

/// Whether a program does without a dynamic linker: it names no interpreter and needs no library. It relocates itself.
pub fn is_static(object: &Object) -> bool {
    object.mapping.layout.interpreter.is_none()
        && object.dynamic.as_ref().is_none_or(|dynamic: &Dynamic<'_>| dynamic.needed().next().is_none())
}

/// The interpreter that a program names, without its NUL.
pub fn interpreter(object: &Object) -> Option<&'static [u8]> {
    let range = object.mapping.layout.interpreter?;
    let image: Image<'static> = object.image();
    image.strings(range.start, range.size)?.get(0)
}
