//! Loads a closure: the objects that a set of roots needs, breadth first, each file once.

use crate::error::{Error, Reason};
use crate::fallible::{OutOfMemory, try_push};
use crate::map::{self, Mapping, Pages};
use crate::object::{Object, ObjectIndex, ObjectSet, Role};
use crate::open::Candidate;
use crate::search::Search;
use crate::text::Text;
use alloc::vec::Vec;
use rtld_sys::file::{self, File};
use rtld_sys::{Errno, memory};

/// The names under which the C library's private world is known: glibc's libc and loader, and the two libraries
/// that were apart from them before glibc 2.34.
pub const SYSTEM_NAMES: [&[u8]; 4] = [C_LIBRARY, PASSIVE_LOADER, b"libdl.so.2", b"libpthread.so.0"];

/// The soname of the C library.
pub const C_LIBRARY: &[u8] = b"libc.so.6";

/// The soname of glibc's own dynamic linker.
pub const PASSIVE_LOADER: &[u8] = b"ld-linux-x86-64.so.2";

/// A library that could not be loaded, and who asked for it.
#[derive(Debug)]
pub struct Missing {
    /// The name in DT_NEEDED.
    pub name: &'static [u8],
    /// The object that needs it.
    pub requester: ObjectIndex,
    /// How many objects there were when it was found missing: its place in the list of all.
    pub place: usize,
    /// Why it could not be loaded.
    pub error: Error,
}

/// A relative path made absolute by today's working directory; empty where that cannot be known.
// Not inlined: a page of stack that nearly no load needs.
#[inline(never)]
fn absolute(path: &Text) -> Result<Text, OutOfMemory> {
    let mut buffer = [0; 4096];
    match file::working_directory(&mut buffer) {
        Ok(working) => Text::join(&[working, b"/", path.as_bytes()]),
        Err(_) => Ok(Text::empty()),
    }
}

/// Loads objects into a set.
pub struct Loader<'a, 'p> {
    /// The objects so far.
    pub objects: &'a mut ObjectSet,
    /// Where to look.
    pub search: &'a mut Search<'p>,
    /// The system's pages.
    pub pages: Pages,
    /// Where the object begins that was loaded last: the next one is put below it. None if there was none, 0 if there is no room.
    pub below: Option<usize>,
    /// At the start, the first object that was loaded under the C library's soname, and its file: parts of it are read. None if
    /// there was no descriptor left for it.
    pub c_library: Option<(ObjectIndex, File)>,
}

impl Loader<'_, '_> {
    /// Loads one library by name, or finds it loaded.
    pub fn load(
        &mut self,
        from: ObjectIndex,
        requester: Option<ObjectIndex>,
        name: &[u8],
    ) -> Result<ObjectIndex, Error> {
        if let Some(known) = self.objects.called(name) {
            return Ok(known);
        }
        let loaded = self.objects.bound();
        let candidate = match self.search.find(self.objects, from, name) {
            // Its place is needed more.
            Err(error) if matches!(error.reason, Reason::Open(Errno::MFILE)) && self.c_library.take().is_some() => {
                self.search.find(self.objects, from, name)?
            }
            found => found?,
        };
        let index = self.take(&candidate).map_err(|reason| reason.of(candidate.path.as_bytes()))?;
        self.objects.add_alias(index, name)?;
        if index.position() == loaded {
            if let Some(entry) = self.objects.entry_mut(index) {
                entry.requester = requester;
            }
            let soname = self.objects.get(index).and_then(|object| object.soname());
            if self.pages.are_of_start() && self.c_library.is_none() && soname == Some(C_LIBRARY) {
                self.c_library = Some((index, candidate.file));
            }
        }
        Ok(index)
    }

    /// Maps an opened file, unless it is one that is loaded under another name.
    fn take(&mut self, candidate: &Candidate) -> Result<ObjectIndex, Reason> {
        let identity = candidate.identity();
        if let Some(known) = self.objects.find(|object| object.identity == Some(identity)) {
            // The program itself cannot be had as a library, under whatever name.
            return if known.position() == 0 { Err(Reason::PositionIndependentProgram) } else { Ok(known) };
        }
        let path = candidate.path.try_clone()?;
        // The library cache may have come below the object that was mapped last.
        let below = self.below.map(|below| self.search.cache_start().map_or(below, |cache| cache.min(below)));
        let mapping = map::map_file(&candidate.file, &candidate.status, &candidate.prefix, self.pages, below)?;
        let (start, end) = (mapping.start, mapping.end);
        let taken = self.digest(candidate, path, mapping);
        if taken.is_ok() {
            // Where the kernel goes upwards (setarch -L), there is no room below.
            let goes_down = below.is_none_or(|below| end <= below);
            self.below = Some(if goes_down { start } else { 0 });
        } else {
            // SAFETY: the mapping was made above and nothing of it was handed out.
            let _ = unsafe { memory::unmap(start, end - start) };
        }
        taken
    }

    /// Makes an object of a mapping and adds it.
    fn digest(&mut self, candidate: &Candidate, path: Text, mapping: Mapping) -> Result<ObjectIndex, Reason> {
        let mut object = Object::new(Role::Library, path, mapping)?;
        object.identity = Some(candidate.identity());
        if object.path.as_bytes().first() != Some(&b'/') {
            object.real_path = absolute(&object.path)?;
        }
        if let Some(soname) = object.soname() {
            object.is_system = SYSTEM_NAMES.contains(&soname);
            if soname == PASSIVE_LOADER {
                object.role = Role::PassiveLoader;
            }
        }
        if object.mapping.kind == rtld_elf::FileKind::Executable {
            return Err(Reason::NotALibrary);
        }
        let dynamic = object.dynamic.as_ref();
        if dynamic.is_some_and(|dynamic| dynamic.flags_1.contains(rtld_elf::dynamic::Flags1::PIE)) {
            return Err(Reason::PositionIndependentProgram);
        }
        Ok(self.objects.add(object)?)
    }

    /// Loads what the objects from `first` on need, and what those need. All that is missing is told, in order.
    pub fn load_dependencies(&mut self, first: ObjectIndex) -> Result<Vec<Missing>, Error> {
        let mut missing: Vec<Missing> = Vec::new();
        let mut next = first;
        while let Some(object) = self.objects.get(next) {
            let (names, role) = (object.dynamic.as_ref().map(|dynamic| dynamic.needed()), object.role);
            if let Some(names) = names.filter(|_| matches!(role, Role::Program | Role::Library | Role::PassiveLoader)) {
                for name in names {
                    match self.load(next, Some(next), name) {
                        Ok(dependency) => {
                            if let Some(entry) = self.objects.entry_mut(next) {
                                try_push(&mut entry.needed, dependency)?;
                            }
                        }
                        Err(error) if missing.iter().any(|known| known.name == name) => drop(error),
                        Err(error) => {
                            let place = self.objects.bound();
                            try_push(&mut missing, Missing { name, requester: next, place, error })?;
                        }
                    }
                }
            }
            next = ObjectIndex(next.0 + 1);
        }
        Ok(missing)
    }
}
