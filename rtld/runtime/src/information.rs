//! `dlinfo`(3): what is known about an open object.

use crate::thread_local;
use crate::threads;
use crate::world::{Handle, World};
use crate::writer;
use core::ffi::c_char;
use rtld_link::object::ObjectIndex;
use rtld_link::search::{self, Origin};

/// The requests (<dlfcn.h> of glibc).
mod request {
    pub const LMID: i32 = 1;
    pub const LINKMAP: i32 = 2;
    pub const SERINFO: i32 = 4;
    pub const SERINFOSIZE: i32 = 5;
    pub const ORIGIN: i32 = 6;
    pub const TLS_MODID: i32 = 9;
    pub const TLS_DATA: i32 = 10;
    pub const PHDR: i32 = 11;
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// The handle is none.
    BadHandle,
    /// A request that we do not know.
    Unsupported,
    /// The origin cannot be known, or there is no memory.
    Unknown,
}

/// Answers a request; gives what `dlinfo` returns.
///
/// # Safety
/// `argument` must be what the request asks for (dlinfo(3)).
pub unsafe fn answer(world: &World, handle: *mut Handle, request: i32, argument: *mut usize) -> Result<i32, Failure> {
    let index = threads::read(world, |snapshot| snapshot.index_of(handle)).ok_or(Failure::BadHandle)?;
    // SAFETY: the caller's promise for the requests that fill a word.
    let fill = |value: usize| unsafe { argument.write(value) };
    match request {
        request::LMID => fill(0),
        request::LINKMAP => fill(handle.expose_provenance()),
        request::TLS_MODID => fill(threads::read(world, |snapshot| snapshot.tls.id(index))),
        request::TLS_DATA => {
            let block = |snapshot: &crate::world::Snapshot| match snapshot.tls.id(index) {
                0 => 0,
                module => thread_local::block(snapshot, module).unwrap_or(0),
            };
            fill(threads::read(world, block));
        }
        request::PHDR => {
            let headers = threads::read(world, |snapshot| {
                snapshot
                    .objects
                    .get(index)
                    .map(|object| (object.mapping.headers.as_ptr(), object.mapping.headers.len()))
            });
            let (start, count) = headers.ok_or(Failure::BadHandle)?;
            fill(start.expose_provenance());
            return Ok(count as i32);
        }
        request::ORIGIN => return origin(world, index, argument.cast()),
        request::SERINFOSIZE => return serialise(world, index, argument.cast(), false),
        request::SERINFO => return serialise(world, index, argument.cast(), true),
        _ => return Err(Failure::Unsupported),
    }
    Ok(0)
}

fn origin(world: &World, index: ObjectIndex, place: *mut c_char) -> Result<i32, Failure> {
    writer::write(world, |state| {
        let object = state.objects.get(index).ok_or(Failure::BadHandle)?;
        let mut path = alloc::vec::Vec::new();
        if !search::origin_of(object, &mut path).map_err(|_| Failure::Unknown)? {
            return Err(Failure::Unknown);
        }
        copy_string(&path, place);
        Ok(0)
    })
}

fn copy_string(text: &[u8], place: *mut c_char) {
    let place = place.cast::<u8>();
    // SAFETY: the caller of dlinfo gives room for the text.
    unsafe { place.copy_from_nonoverlapping(text.as_ptr(), text.len()) };
    // SAFETY: and for its NUL.
    unsafe { place.wrapping_add(text.len()).write(0) };
}

/// `Dl_serinfo`: size and count, then pairs of a pointer and flags, then the texts.
#[repr(C)]
struct SearchInformation {
    size: usize,
    count: u32,
}

#[repr(C)]
struct SearchPath {
    name: *mut c_char,
    flags: u32,
}

fn flags(origin: Origin) -> u32 {
    match origin {
        Origin::Rpath | Origin::Runpath => 0,
        Origin::LibraryPath => 0,
        Origin::Default => 0x40,
    }
}

fn serialise(world: &World, index: ObjectIndex, place: *mut SearchInformation, fill: bool) -> Result<i32, Failure> {
    writer::write(world, |state| {
        let (mut count, mut size) = (0_usize, 0_usize);
        let measure = |path: &[u8], _: Origin| {
            count += 1;
            size += trimmed(path).len() + 1;
        };
        state.search.paths_of(&state.objects, index, measure).map_err(|_| Failure::Unknown)?;
        let texts = size_of::<SearchInformation>() + count * size_of::<SearchPath>();
        if !fill {
            // SAFETY: the caller gives a structure to fill.
            unsafe { place.write(SearchInformation { size: texts + size, count: count as u32 }) };
            return Ok(0);
        }
        let mut entry = place.wrapping_add(1).cast::<SearchPath>();
        let mut text = place.cast::<c_char>().wrapping_add(texts);
        let write = |path: &[u8], origin: Origin| {
            let path = trimmed(path);
            // SAFETY: the caller gives as much memory as RTLD_DI_SERINFOSIZE said.
            unsafe { entry.write(SearchPath { name: text, flags: flags(origin) }) };
            copy_string(path, text);
            entry = entry.wrapping_add(1);
            text = text.wrapping_add(path.len() + 1);
        };
        state.search.paths_of(&state.objects, index, write).map_err(|_| Failure::Unknown)?;
        Ok(0)
    })
}

/// A directory without its final slash.
fn trimmed(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").filter(|path| !path.is_empty()).unwrap_or(path)
}
