//! One loaded object, digested: everything later steps ask of it, and nothing that changes by relocating or
//! initialising it (those steps keep their own records, by [`ObjectIndex`]).

use crate::error::Reason;
use crate::fallible::{OutOfMemory, try_box, try_filled, try_push};
use crate::map::Mapping;
use crate::text::Text;
use alloc::boxed::Box;
use alloc::vec::Vec;
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
    /// Absolute path without symbolic links, where it was worth finding out (the program's, for `$ORIGIN`).
    pub real_path: Text,
    /// Other names that it was asked for by.
    pub aliases: Vec<Text>,
    /// Which file it is; None for what the kernel mapped.
    pub identity: Option<FileIdentity>,
    /// Its memory.
    pub mapping: Mapping,
    /// Its dynamic section; None for a static program.
    pub dynamic: Option<Dynamic<'static>>,
    /// By version index: the version's name and hash.
    pub versions: Vec<Version>,
    /// The object whose DT_NEEDED brought it in.
    pub requester: Option<ObjectIndex>,
    /// Its direct dependencies in the order of DT_NEEDED.
    pub needed: Vec<ObjectIndex>,
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
            aliases: Vec::new(),
            identity: None,
            mapping,
            dynamic,
            versions,
            requester: None,
            needed: Vec::new(),
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

    /// Whether it goes by this name: its path, a name it was asked for by, or its soname.
    pub fn is_called(&self, name: &[u8]) -> bool {
        self.path.as_bytes() == name && !name.is_empty()
            || self.soname() == Some(name)
            || self.aliases.iter().any(|alias| alias.as_bytes() == name)
    }

    /// Remembers one more name.
    pub fn add_alias(&mut self, name: &[u8]) -> Result<(), OutOfMemory> {
        if self.path.as_bytes() == name || self.aliases.iter().any(|alias| alias.as_bytes() == name) {
            return Ok(());
        }
        try_push(&mut self.aliases, Text::new(name)?)
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

/// All loaded objects in load order; the program is the first.
#[derive(Debug, Default)]
pub struct ObjectSet {
    objects: Vec<Box<Object>>,
}

impl ObjectSet {
    /// No objects yet.
    pub const fn new() -> ObjectSet {
        ObjectSet { objects: Vec::new() }
    }

    /// Appends an object.
    pub fn add(&mut self, object: Object) -> Result<ObjectIndex, OutOfMemory> {
        let index = ObjectIndex(self.objects.len() as u32);
        let object = try_box(object)?;
        try_push(&mut self.objects, object)?;
        Ok(index)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// One object.
    pub fn get(&self, index: ObjectIndex) -> Option<&Object> {
        self.objects.get(index.position()).map(|object| &**object)
    }

    /// One object, to change what loading may still change.
    pub fn get_mut(&mut self, index: ObjectIndex) -> Option<&mut Object> {
        self.objects.get_mut(index.position()).map(|object| &mut **object)
    }

    /// All of them with their indexes, in load order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (ObjectIndex, &Object)> + Clone {
        self.objects.iter().enumerate().map(|(index, object)| (ObjectIndex(index as u32), &**object))
    }

    /// The first object that matches.
    pub fn find(&self, matches: impl Fn(&Object) -> bool) -> Option<ObjectIndex> {
        self.iter().find(|(_, object)| matches(object)).map(|(index, _)| index)
    }

    /// The object that defines the given soname or was asked for by this name.
    pub fn called(&self, name: &[u8]) -> Option<ObjectIndex> {
        self.find(|object| object.is_called(name))
    }
}
