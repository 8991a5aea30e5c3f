//! Finds the file for a library's name. The order is glibc's (ld.so(8)):
//!
//! 1. DT_RPATH of the object that asks, of the object that brought that one in, and so on, and of the program;
//!    all of this only if the asking object has no DT_RUNPATH, and each object's DT_RPATH only if it has none
//! 2. LD_LIBRARY_PATH or --library-path
//! 3. DT_RUNPATH of the asking object
//! 4. /etc/ld.so.cache (for an object with DF_1_NODEFLIB: not the entries in default directories)
//! 5. the default directories (not for an object with DF_1_NODEFLIB)
//!
//! A name with a slash is a path. In secure mode `$ORIGIN` has no value and relative directories are passed over.

use crate::directories::{Directories, DirectoryId, Step};
use crate::error::{Error, Reason};
use crate::fallible::{OutOfMemory, try_push};
use crate::object::{Object, ObjectIndex, ObjectSet};
use crate::open::{self, Candidate, Refusal};
use crate::text::{Text, directory_of};
use crate::tokens::{self, Tokens};
use alloc::vec::Vec;
use core::cell::OnceCell;
use rtld_elf::cache::Cache;
use rtld_elf::dynamic::Flags1;
use rtld_elf::header::HeaderError;
use rtld_sys::file::{self, File};
use rtld_sys::processor::{self, Level};
use rtld_sys::{Errno, memory};

/// Whether paths may be trusted to the environment and to the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// An ordinary process.
    Full,
    /// A process with more rights than its user (AT_SECURE).
    Secure,
}

/// What a search needs to know about the system and the command line.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// LD_LIBRARY_PATH or --library-path.
    pub library_path: Option<&'a [u8]>,
    /// AT_PLATFORM.
    pub platform: Option<&'a [u8]>,
    /// Whether /etc/ld.so.cache is used.
    pub use_cache: bool,
    /// How far paths are trusted.
    pub trust: Trust,
    /// A file that must never be taken for a library: the first bytes of our own image.
    pub own_header: &'a [u8],
}

/// Which rule a directory is searched by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// DT_RPATH.
    Rpath,
    /// LD_LIBRARY_PATH or --library-path.
    LibraryPath,
    /// DT_RUNPATH.
    Runpath,
    /// A default directory.
    Default,
}

/// A search with all that it has learnt.
pub struct Search<'a> {
    settings: Settings<'a>,
    directories: Directories,
    library_path: Option<Vec<DirectoryId>>,
    defaults: Option<Vec<DirectoryId>>,
    run_paths: Vec<(ObjectIndex, Vec<DirectoryId>)>,
    cache: OnceCell<Option<MappedCache>>,
    multiarch: OnceCell<bool>,
    levels: OnceCell<&'static [Level]>,
}

/// The path of the library cache that ldconfig(8) makes.
const CACHE: &core::ffi::CStr = c"/etc/ld.so.cache";
const MULTIARCH: &core::ffi::CStr = c"/lib/x86_64-linux-gnu";
/// Default directories of Debian and its relatives.
const DEFAULTS_MULTIARCH: [&[u8]; 4] = [b"/lib/x86_64-linux-gnu", b"/usr/lib/x86_64-linux-gnu", b"/lib", b"/usr/lib"];
/// Default directories of the others.
const DEFAULTS_LIB64: [&[u8]; 4] = [b"/lib64", b"/usr/lib64", b"/lib", b"/usr/lib"];

struct MappedCache {
    start: usize,
    length: usize,
}

impl MappedCache {
    fn open() -> Option<MappedCache> {
        let file = File::open(CACHE).ok()?;
        let length = usize::try_from(file.status().ok()?.size).ok().filter(|&length| length != 0)?;
        let start = memory::map_file(0, length, memory::READ, file.descriptor(), 0).ok()?;
        Some(MappedCache { start, length })
    }

    fn bytes(&self) -> &[u8] {
        let first = core::ptr::with_exposed_provenance::<u8>(self.start);
        // SAFETY: the private mapping is `length` bytes long and lives as long as self. ldconfig replaces the
        // file by renaming, so the bytes do not change under us.
        unsafe { core::slice::from_raw_parts(first, self.length) }
    }
}

impl Drop for MappedCache {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrowed from it outlives self.
        let _ = unsafe { memory::unmap(self.start, self.length) };
    }
}

/// A search that went on: what it has seen of other machines.
#[derive(Default)]
struct Trail {
    foreign: Option<HeaderError>,
}

impl<'a> Search<'a> {
    /// A search that knows nothing yet.
    pub fn new(settings: Settings<'a>) -> Search<'a> {
        Search {
            settings,
            directories: Directories::new(),
            library_path: None,
            defaults: None,
            run_paths: Vec::new(),
            cache: OnceCell::new(),
            multiarch: OnceCell::new(),
            levels: OnceCell::new(),
        }
    }

    /// Where the library cache lies in memory, if it does.
    pub fn cache_start(&self) -> Option<usize> {
        self.cache.get()?.as_ref().map(|mapped| mapped.start)
    }

    /// A search with the same settings that knows nothing yet.
    pub fn afresh(&self) -> Search<'a> {
        Search::new(self.settings)
    }

    /// Opens the file for `name` as `from` asks for it.
    pub fn find(&mut self, objects: &ObjectSet, from: ObjectIndex, name: &[u8]) -> Result<Candidate, Error> {
        if name.contains(&b'/') {
            return self.open_path(objects.get(from), name);
        }
        let mut trail = Trail::default();
        let found = self.search(objects, from, name, &mut trail).map_err(|refusal| refusal.error(name))?;
        found.ok_or_else(|| match trail.foreign {
            Some(error) => Reason::Header(error).of(name),
            None => Reason::Open(Errno::NOENT).of(name),
        })
    }

    fn search(
        &mut self,
        objects: &ObjectSet,
        from: ObjectIndex,
        name: &[u8],
        trail: &mut Trail,
    ) -> Result<Option<Candidate>, Refusal> {
        let asking = objects.get(from);
        let has_run_path = asking.is_some_and(|object| run_path(object).is_some());
        if !has_run_path {
            let mut next = Some(from);
            let mut saw_program = false;
            // The chain is as long as the nesting of requests; each object's requester is older than itself.
            while let Some(index) = next {
                saw_program |= index.position() == 0;
                if let Some(found) = self.search_own(objects, index, r_path, name, trail)? {
                    return Ok(Some(found));
                }
                next = objects.entry(index).and_then(|entry| entry.requester).filter(|&older| older < index);
            }
            if !saw_program && let Some(found) = self.search_own(objects, ObjectIndex(0), r_path, name, trail)? {
                return Ok(Some(found));
            }
        }
        let list = self.library_path(objects)?;
        if let Some(found) = self.search_list(&list, name, trail)? {
            return Ok(Some(found));
        }
        if has_run_path && let Some(found) = self.search_own(objects, from, run_path, name, trail)? {
            return Ok(Some(found));
        }
        let no_defaults = asking
            .and_then(|object| object.dynamic.as_ref())
            .is_some_and(|dynamic| dynamic.flags_1.contains(Flags1::NODEFLIB));
        if let Some(found) = self.search_cache(name, no_defaults, trail)? {
            return Ok(Some(found));
        }
        if no_defaults {
            return Ok(None);
        }
        let list = self.default_list()?;
        self.search_list(&list, name, trail)
    }

    /// A name with a slash: no search, only tokens.
    fn open_path(&mut self, from: Option<&Object>, name: &[u8]) -> Result<Candidate, Error> {
        let path = self.expand(from, name)?.filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| Reason::EmptyExpansion.of(name))?;
        if self.settings.trust == Trust::Secure && path.first() != Some(&b'/') {
            return Err(Reason::Open(Errno::NOENT).of(name));
        }
        open::open(Text::new(&path)?).map_err(|refusal| refusal.error(name))
    }

    fn search_own(
        &mut self,
        objects: &ObjectSet,
        index: ObjectIndex,
        path: fn(&Object) -> Option<&'static [u8]>,
        name: &[u8],
        trail: &mut Trail,
    ) -> Result<Option<Candidate>, Refusal> {
        let Some(object) = objects.get(index) else {
            return Ok(None);
        };
        let Some(text) = path(object) else {
            return Ok(None);
        };
        let known = self.run_paths.iter().position(|(owner, _)| *owner == index);
        let position = match known {
            Some(position) => position,
            None => {
                let list = self.split(Some(object), text, false)?;
                try_push(&mut self.run_paths, (index, list))?;
                self.run_paths.len() - 1
            }
        };
        let list = self.run_paths.get(position).map_or(&[][..], |(_, list)| list);
        let list = clone_list(list)?;
        self.search_list(&list, name, trail)
    }

    fn search_list(
        &mut self,
        list: &[DirectoryId],
        name: &[u8],
        trail: &mut Trail,
    ) -> Result<Option<Candidate>, Refusal> {
        for &directory in list {
            let levels = &self.levels;
            match self.directories.search(directory, name, &|| levels.get_or_init(processor::levels)) {
                Step::Found(candidate) if self.is_ourselves(&candidate) => {}
                Step::Found(candidate) => return Ok(Some(candidate)),
                Step::Next(foreign) => trail.foreign = trail.foreign.or(foreign),
                Step::Stop(refusal) => return Err(refusal),
            }
        }
        Ok(None)
    }

    fn search_cache(
        &mut self,
        name: &[u8],
        no_defaults: bool,
        trail: &mut Trail,
    ) -> Result<Option<Candidate>, Refusal> {
        if !self.settings.use_cache {
            return Ok(None);
        }
        let Some(mapped) = self.cache.get_or_init(MappedCache::open) else {
            return Ok(None);
        };
        let Some(cache) = Cache::parse(mapped.bytes()) else {
            return Ok(None);
        };
        let levels = &self.levels;
        let priority = |wanted: &[u8]| {
            let levels: &'static [Level] = levels.get_or_init(processor::levels);
            levels.iter().position(|level| level.name().as_bytes() == wanted).map(|place| place as u32)
        };
        let Some(path) = cache.lookup(name, priority) else {
            return Ok(None);
        };
        if no_defaults && self.is_below_default(path) {
            return Ok(None);
        }
        match open::open(Text::new(path)?) {
            Ok(candidate) if self.is_ourselves(&candidate) => Ok(None),
            Ok(candidate) => Ok(Some(candidate)),
            Err(Refusal::Absent(_)) => Ok(None),
            Err(Refusal::Foreign(error)) => {
                trail.foreign = trail.foreign.or(Some(error));
                Ok(None)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Whether a file is the one we run from, installed under the name of the C library's loader.
    fn is_ourselves(&self, candidate: &Candidate) -> bool {
        candidate.prefix.starts_with(self.settings.own_header)
    }

    fn is_below_default(&self, path: &[u8]) -> bool {
        let directory = directory_of(path);
        self.default_names().contains(&directory)
    }

    fn default_names(&self) -> &'static [&'static [u8]; 4] {
        if self.is_multiarch() { &DEFAULTS_MULTIARCH } else { &DEFAULTS_LIB64 }
    }

    fn is_multiarch(&self) -> bool {
        *self.multiarch.get_or_init(|| file::status(MULTIARCH).is_ok_and(|status| status.is_directory()))
    }

    fn library_path(&mut self, objects: &ObjectSet) -> Result<Vec<DirectoryId>, OutOfMemory> {
        if self.library_path.is_none() {
            let program = objects.get(ObjectIndex(0));
            let list = match self.settings.library_path {
                Some(text) => self.split(program, text, true)?,
                None => Vec::new(),
            };
            self.library_path = Some(list);
        }
        clone_list(self.library_path.as_deref().unwrap_or_default())
    }

    fn default_list(&mut self) -> Result<Vec<DirectoryId>, OutOfMemory> {
        if self.defaults.is_none() {
            let mut list = Vec::new();
            for name in self.default_names() {
                try_push(&mut list, self.directories.intern(name)?)?;
            }
            self.defaults = Some(list);
        }
        clone_list(self.defaults.as_deref().unwrap_or_default())
    }

    /// A search path as directories: tokens expanded, repetitions dropped. In a path from the environment ';'
    /// separates too.
    fn split(
        &mut self,
        owner: Option<&Object>,
        text: &[u8],
        environment: bool,
    ) -> Result<Vec<DirectoryId>, OutOfMemory> {
        let mut list = Vec::new();
        for element in text.split(|&byte| byte == b':' || environment && byte == b';') {
            let Some(path) = self.expand(owner, element)? else {
                continue;
            };
            if self.settings.trust == Trust::Secure && path.first() != Some(&b'/') {
                continue;
            }
            let directory = self.directories.intern(&path)?;
            if !list.contains(&directory) {
                try_push(&mut list, directory)?;
            }
        }
        Ok(list)
    }

    /// Replaces the tokens of a text that `owner` holds; None if one has no value.
    pub fn expand(&self, owner: Option<&Object>, text: &[u8]) -> Result<Option<Vec<u8>>, OutOfMemory> {
        let mut origin = Vec::new();
        let mut known = false;
        if self.settings.trust == Trust::Full
            && tokens::uses_origin(text)
            && let Some(owner) = owner
        {
            known = origin_of(owner, &mut origin)?;
        }
        let library: &[u8] =
            if text.contains(&b'$') && self.is_multiarch() { b"lib/x86_64-linux-gnu" } else { b"lib64" };
        let named = if tokens::uses_platform(text) { processor::platform().map(str::as_bytes) } else { None };
        let platform = named.or(self.settings.platform);
        let values = Tokens { origin: known.then_some(&origin), library, platform };
        tokens::expand(text, &values)
    }

    /// The directories that a library with no path of its own would be looked for in, for people to read.
    pub fn describe(&mut self, objects: &ObjectSet, mut show: impl FnMut(&[u8], &str)) -> Result<(), OutOfMemory> {
        for id in self.library_path(objects)? {
            show(self.directories.path(id), "LD_LIBRARY_PATH");
        }
        if self.settings.use_cache {
            show(CACHE.to_bytes(), "library cache");
        }
        for id in self.default_list()? {
            show(self.directories.path(id), "system search path");
        }
        Ok(())
    }

    /// Forgets what is known by the index of an object that is gone: another one may get the index.
    pub fn forget(&mut self, index: ObjectIndex) {
        self.run_paths.retain(|(owner, _)| *owner != index);
    }

    /// Gives the library cache's memory back until the next search.
    pub fn forget_cache(&mut self) {
        self.cache = OnceCell::new();
    }

    /// The directories that an object's dependencies would be looked for in, in order.
    pub fn paths_of(
        &mut self,
        objects: &ObjectSet,
        index: ObjectIndex,
        mut show: impl FnMut(&[u8], Origin),
    ) -> Result<(), OutOfMemory> {
        let Some(object) = objects.get(index) else { return Ok(()) };
        let mut all = Vec::new();
        let own = |search: &mut Self, text: Option<&'static [u8]>| match text {
            Some(text) => search.split(Some(object), text, false),
            None => Ok(Vec::new()),
        };
        for (list, origin) in [
            (own(self, r_path(object))?, Origin::Rpath),
            (self.library_path(objects)?, Origin::LibraryPath),
            (own(self, run_path(object))?, Origin::Runpath),
            (self.default_list()?, Origin::Default),
        ] {
            for id in list {
                try_push(&mut all, (id, origin))?;
            }
        }
        all.iter().for_each(|&(id, origin)| show(self.directories.path(id), origin));
        Ok(())
    }

    /// The processor's levels, best first.
    pub fn levels(&self) -> &'static [Level] {
        self.levels.get_or_init(processor::levels)
    }
}

fn r_path(object: &Object) -> Option<&'static [u8]> {
    object.dynamic.as_ref().and_then(|dynamic| dynamic.rpath)
}

fn run_path(object: &Object) -> Option<&'static [u8]> {
    object.dynamic.as_ref().and_then(|dynamic| dynamic.runpath)
}

fn clone_list(list: &[DirectoryId]) -> Result<Vec<DirectoryId>, OutOfMemory> {
    let mut copy = Vec::new();
    crate::fallible::try_extend(&mut copy, list)?;
    Ok(copy)
}

/// The absolute directory of an object; false if it cannot be known.
// Not inlined: a page of stack that most searches do not need.
#[inline(never)]
pub fn origin_of(object: &Object, origin: &mut Vec<u8>) -> Result<bool, OutOfMemory> {
    let path = if object.real_path.is_empty() { &object.path } else { &object.real_path };
    if path.is_empty() {
        return program_origin(origin);
    }
    let directory = directory_of(path.as_bytes());
    if directory.first() != Some(&b'/') {
        let mut buffer = [0; PATH_MAXIMUM];
        let Ok(working) = file::working_directory(&mut buffer) else {
            return Ok(false);
        };
        crate::fallible::try_extend(origin, working)?;
        if !directory.is_empty() {
            crate::fallible::try_extend(origin, b"/")?;
        }
    }
    crate::fallible::try_extend(origin, directory)?;
    Ok(true)
}

/// The directory of the program that the kernel started, symbolic links resolved.
#[inline(never)]
fn program_origin(origin: &mut Vec<u8>) -> Result<bool, OutOfMemory> {
    let mut buffer = [0; PATH_MAXIMUM];
    let Ok(path) = file::read_link(c"/proc/self/exe", &mut buffer) else {
        return Ok(false);
    };
    if path.first() != Some(&b'/') {
        return Ok(false);
    }
    crate::fallible::try_extend(origin, directory_of(path))?;
    Ok(true)
}

/// PATH_MAX of Linux.
const PATH_MAXIMUM: usize = 4096;
