//! Loaded objects. An [`Object`] is what a file says, digested; it never changes, so running threads may read it without
//! a lock. What loading learns about it later (names, dependencies, who asked) is its [`Entry`], which only the loader
//! touches. What relocating and initialising learn is kept by those steps, by [`ObjectIndex`].

use crate::error::Reason;
use crate::fallible::{OutOfMemory, try_box, try_extend, try_filled, try_push};
use crate::map::Mapping;
use crate::name_index::NameIndex;
use crate::text::Text;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};
use rtld_elf::version::VERSYM_INDEX;
use rtld_elf::{Dynamic, Image};

/// Position of an object in load order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ObjectIndex(pub u32);

impl ObjectIndex {
    /// As a position in a slice.
    pub fn position(self) -> usize {
        self.0 as usize
    }
}

/// What part an object plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The program itself.
    Program,
    /// The kernel's own object: never relocated, never initialised.
    Vdso,
    /// A library.
    Library,
    /// The C library's own dynamic linker, mapped for the data in it; its code is never entered to link.
    PassiveLoader,
    /// This dynamic linker.
    Ourselves,
}

/// Device and inode: what makes two paths the same file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileIdentity {
    /// st_dev.
    pub device: u64,
    /// st_ino.
    pub inode: u64,
}

/// A symbol version as an object's version index names it.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// Its name; empty for the indexes 0 and 1 and for holes.
    pub name: &'static [u8],
    /// SysV hash of the name; 0 for the indexes 0 and 1 and for holes.
    pub hash: u32,
}

impl Version {
    const NONE: Version = Version { name: b"", hash: 0 };
}

/// A loaded object.
#[derive(Debug)]
pub struct Object {
    /// Its part.
    pub role: Role,
    /// The name in the link map: the path it was found by, empty for the program.
    pub path: Text,
    /// Absolute path at the time of loading, where `path` is none, for `$ORIGIN`; the program's without symbolic links.
    pub real_path: Text,
    /// Which file it is; None for what the kernel mapped.
    pub identity: Option<FileIdentity>,
    /// Its memory.
    pub mapping: Mapping,
    /// Its dynamic section; None for a static program.
    pub dynamic: Option<Dynamic<'static>>,
    /// By version index: the version's name and hash.
    pub versions: Vec<Version>,
    /// Part of the C library's private world: what it defines may be substituted.
    pub is_system: bool,
}

impl Object {
    /// Digests a mapping.
    pub fn new(role: Role, path: Text, mapping: Mapping) -> Result<Object, Reason> {
        let image = mapping.image();
        let dynamic = match mapping.layout.dynamic {
            Some(range) => Some(Dynamic::digest(&image, range)?),
            None if role == Role::Program => None,
            None => return Err(Reason::NoDynamicSection),
        };
        let versions = match &dynamic {
            Some(dynamic) => version_table(dynamic)?,
            None => Vec::new(),
        };
        Ok(Object {
            role,
            path,
            real_path: Text::empty(),
            identity: None,
            mapping,
            dynamic,
            versions,
            is_system: false,
        })
    }

    /// Its memory as a checked view.
    pub fn image(&self) -> Image<'static> {
        self.mapping.image()
    }

    /// DT_SONAME.
    pub fn soname(&self) -> Option<&'static [u8]> {
        self.dynamic.as_ref().and_then(|dynamic| dynamic.soname)
    }

    /// What a version index of this object stands for.
    #[inline]
    pub fn version(&self, index: u16) -> Version {
        self.versions.get(usize::from(index & VERSYM_INDEX)).copied().unwrap_or(Version::NONE)
    }

    /// A virtual address of the file as an address in memory.
    #[inline]
    pub fn address(&self, vaddr: u64) -> usize {
        self.mapping.bias.wrapping_add(vaddr as usize)
    }
}

fn version_table(dynamic: &Dynamic<'static>) -> Result<Vec<Version>, OutOfMemory> {
    let versions = &dynamic.versions;
    if !versions.has_definitions() && versions.needs().next().is_none() {
        return Ok(Vec::new());
    }
    let mut table = try_filled(Version::NONE, usize::from(versions.highest_index()) + 1)?;
    for definition in versions.definitions().filter(|definition| !definition.is_base()) {
        if let Some(slot) = table.get_mut(usize::from(definition.index & VERSYM_INDEX)) {
            *slot = Version { name: definition.name, hash: definition.hash };
        }
    }
    for need in versions.needs() {
        for version in need.versions() {
            if let Some(slot) = table.get_mut(usize::from(version.index & VERSYM_INDEX)) {
                *slot = Version { name: version.name, hash: version.hash };
            }
        }
    }
    Ok(table)
}

/// What the loader keeps about an object besides the object itself. Once it is published only aliases are added.
#[derive(Debug)]
pub struct Entry {
    object: &'static Object,
    /// Other names that it was asked for by, the last one first. A list that grows by one store: the copy of a process that
    /// is made meanwhile (a fork) finds it whole.
    aliases: AtomicPtr<Alias>,
    /// The object whose DT_NEEDED or dlopen brought it in.
    pub requester: Option<ObjectIndex>,
    /// Its direct dependencies in the order of DT_NEEDED.
    pub needed: Vec<ObjectIndex>,
}

#[derive(Debug)]
struct Alias {
    name: Text,
    next: *mut Alias,
}

impl Entry {
    /// The object.
    pub fn object(&self) -> &'static Object {
        self.object
    }

    fn aliases(&self) -> impl Iterator<Item = &Text> {
        let mut next = self.aliases.load(Ordering::Acquire).cast_const();
        core::iter::from_fn(move || {
            // SAFETY: null, or a box that add_alias leaked and that lives as long as the entry.
            let alias = unsafe { next.as_ref() }?;
            next = alias.next;
            Some(&alias.name)
        })
    }

    /// The first name that it was asked for by, if that is not its path.
    pub fn first_alias(&self) -> Option<&Text> {
        self.aliases().last()
    }

    /// Whether it goes by this name: its path, a name it was asked for by, or its soname.
    pub fn is_called(&self, name: &[u8]) -> bool {
        self.object.path.as_bytes() == name && !name.is_empty()
            || self.object.soname() == Some(name)
            || self.aliases().any(|alias| alias.as_bytes() == name)
    }

    /// All names that it goes by.
    fn names(&self) -> impl Iterator<Item = &[u8]> {
        let own = [Some(self.object.path.as_bytes()), self.object.soname()].into_iter().flatten();
        own.chain(self.aliases().map(Text::as_bytes))
    }

    /// Remembers one more name; false if it is known.
    fn add_alias(&mut self, name: &[u8]) -> Result<bool, OutOfMemory> {
        if self.object.path.as_bytes() == name || self.aliases().any(|alias| alias.as_bytes() == name) {
            return Ok(false);
        }
        let alias = try_box(Alias { name: Text::new(name)?, next: *self.aliases.get_mut() })?;
        self.aliases.store(Box::into_raw(alias), Ordering::Release);
        Ok(true)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut next = core::mem::replace(self.aliases.get_mut(), core::ptr::null_mut());
        while !next.is_null() {
            // SAFETY: a box that add_alias leaked.
            let alias = unsafe { Box::from_raw(next) };
            next = alias.next;
        }
    }
}

/// Objects by index, in load order; the program is the first. Removed objects leave holes.
#[derive(Debug, Default)]
pub struct ObjectTable {
    objects: Vec<Option<&'static Object>>,
}

impl ObjectTable {
    /// No objects yet.
    pub const fn new() -> ObjectTable {
        ObjectTable { objects: Vec::new() }
    }

    /// The same objects in a table of its own.
    pub fn try_clone(&self) -> Result<ObjectTable, OutOfMemory> {
        let mut objects = Vec::new();
        try_extend(&mut objects, &self.objects)?;
        Ok(ObjectTable { objects })
    }

    /// One more than the highest index, holes included.
    pub fn bound(&self) -> usize {
        self.objects.len()
    }

    /// How many objects there are.
    pub fn count(&self) -> usize {
        self.objects.iter().flatten().count()
    }

    /// One object.
    #[inline]
    pub fn get(&self, index: ObjectIndex) -> Option<&'static Object> {
        self.objects.get(index.position()).copied().flatten()
    }

    /// All of them with their indexes, in load order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (ObjectIndex, &'static Object)> + Clone {
        let numbered = self.objects.iter().enumerate();
        numbered.filter_map(|(index, object)| object.map(|object| (ObjectIndex(index as u32), object)))
    }

    /// The first object that matches.
    pub fn find(&self, matches: impl Fn(&Object) -> bool) -> Option<ObjectIndex> {
        self.iter().find(|(_, object)| matches(object)).map(|(index, _)| index)
    }
}

/// All loaded objects, as the loader keeps them.
#[derive(Debug, Default)]
pub struct ObjectSet {
    table: ObjectTable,
    /// Boxes, so that copies of the set share them.
    entries: Vec<Option<NonNull<Entry>>>,
    /// Entries of objects that were taken out.
    removed: Vec<NonNull<Entry>>,
    /// Which of them go by a name.
    names: NameIndex,
}

impl ObjectSet {
    /// No objects yet.
    pub const fn new() -> ObjectSet {
        ObjectSet { table: ObjectTable::new(), entries: Vec::new(), removed: Vec::new(), names: NameIndex::new() }
    }

    /// The set as it is now. The two share what is kept about objects: only one of them may be used, and what was taken out of
    /// it freed ([`ObjectSet::free_removed`]) only when the other one is gone.
    pub fn try_clone(&self) -> Result<ObjectSet, OutOfMemory> {
        let mut entries = Vec::new();
        try_extend(&mut entries, &self.entries)?;
        Ok(ObjectSet { table: self.table.try_clone()?, entries, removed: Vec::new(), names: self.names.try_clone()? })
    }

    /// Appends an object.
    pub fn add(&mut self, object: Object) -> Result<ObjectIndex, OutOfMemory> {
        let index = ObjectIndex(self.entries.len() as u32);
        self.entries.try_reserve(1).map_err(|_| OutOfMemory)?;
        self.table.objects.try_reserve(1).map_err(|_| OutOfMemory)?;
        self.names.reserve(2)?;
        let object: &'static Object = Box::leak(try_box(object)?);
        let aliases = AtomicPtr::new(core::ptr::null_mut());
        let entry = Box::leak(try_box(Entry { object, aliases, requester: None, needed: Vec::new() })?);
        try_push(&mut self.table.objects, Some(object))?;
        entry.names().for_each(|name| self.names.add(name, index));
        try_push(&mut self.entries, Some(NonNull::from(entry)))?;
        Ok(index)
    }

    /// Remembers one more name of an object.
    pub fn add_alias(&mut self, index: ObjectIndex, name: &[u8]) -> Result<(), OutOfMemory> {
        self.names.reserve(1)?;
        if self.entry_mut(index).map_or(Ok(false), |entry| entry.add_alias(name))? {
            self.names.add(name, index);
        }
        Ok(())
    }

    /// Takes an object out. Its memory is the caller's to free, when nobody reads it any more. Indexes at the end are
    /// given out again.
    pub fn remove(&mut self, index: ObjectIndex) -> Option<&'static Object> {
        let object = self.table.objects.get_mut(index.position()).and_then(Option::take)?;
        if let Some(entry) = self.entries.get_mut(index.position()).and_then(Option::take) {
            // Without memory for the note it stays.
            let _ = try_push(&mut self.removed, entry);
        }
        while let Some(None) = self.table.objects.last() {
            self.table.objects.pop();
            self.entries.pop();
        }
        // Its names are gone with it; those of the others have room already.
        let mut names = core::mem::take(&mut self.names);
        names.clear();
        for (index, _) in self.iter() {
            self.entry(index).iter().flat_map(|entry| entry.names()).for_each(|name| names.add(name, index));
        }
        self.names = names;
        Some(object)
    }

    /// Frees what was kept about objects that were taken out.
    pub fn free_removed(&mut self) {
        while let Some(entry) = self.removed.pop() {
            // SAFETY: a box that add() leaked; it is in no list any more.
            drop(unsafe { Box::from_raw(entry.as_ptr()) });
        }
    }

    /// The objects alone.
    pub fn table(&self) -> &ObjectTable {
        &self.table
    }

    /// One object.
    pub fn get(&self, index: ObjectIndex) -> Option<&'static Object> {
        self.table.get(index)
    }

    /// What the loader keeps about an object.
    pub fn entry(&self, index: ObjectIndex) -> Option<&Entry> {
        let entry = self.entries.get(index.position()).copied().flatten()?;
        // SAFETY: a box that add() leaked, and that lives as long as it is in the list.
        Some(unsafe { entry.as_ref() })
    }

    /// What the loader keeps about an object, to change it.
    pub fn entry_mut(&mut self, index: ObjectIndex) -> Option<&mut Entry> {
        let mut entry = self.entries.get(index.position()).copied().flatten()?;
        // SAFETY: as above; of two sets that share it only one is used.
        Some(unsafe { entry.as_mut() })
    }

    /// One more than the highest index, holes included.
    pub fn bound(&self) -> usize {
        self.table.bound()
    }

    /// All objects with their indexes, in load order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (ObjectIndex, &'static Object)> + Clone {
        self.table.iter()
    }

    /// The first object that matches.
    pub fn find(&self, matches: impl Fn(&Object) -> bool) -> Option<ObjectIndex> {
        self.table.find(matches)
    }

    /// The first object in load order that goes by this name.
    pub fn called(&self, name: &[u8]) -> Option<ObjectIndex> {
        let is_called = |index: &ObjectIndex| self.entry(*index).is_some_and(|entry| entry.is_called(name));
        self.names.candidates(name).filter(is_called).min()
    }

    /// An object and all that it needs, breadth first, each once (gABI: the order of lookup).
    pub fn closure(&self, root: ObjectIndex) -> Result<Vec<ObjectIndex>, OutOfMemory> {
        let mut seen = try_filled(false, self.bound())?;
        let mut members = Vec::new();
        let mut add = |members: &mut Vec<ObjectIndex>, index: ObjectIndex| match seen.get_mut(index.position()) {
            Some(known) if !*known => {
                *known = true;
                try_push(members, index)
            }
            _ => Ok(()),
        };
        add(&mut members, root)?;
        let mut next = 0;
        while let Some(&index) = members.get(next) {
            next += 1;
            for &dependency in self.entry(index).map_or(&[][..], |entry| &entry.needed) {
                add(&mut members, dependency)?;
            }
        }
        Ok(members)
    }
}
