//! Directories that libraries are looked for in. Each is kept once, with what is known about it, so that a
//! directory that does not exist is asked once and not once a library.

use crate::fallible::{OutOfMemory, try_push};
use crate::open::{self, Candidate, Refusal};
use crate::text::Text;
use alloc::vec::Vec;
use rtld_elf::header::HeaderError;
use rtld_sys::Errno;
use rtld_sys::file;
use rtld_sys::processor::Level;

/// A directory, by its place in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectoryId(usize);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Presence {
    Unknown,
    Present,
    Absent,
}

#[derive(Debug)]
struct Directory {
    /// With its final slash; empty for none.
    path: Text,
    presence: Presence,
    capabilities: Presence,
}

/// All directories met so far.
#[derive(Debug, Default)]
pub struct Directories {
    table: Vec<Directory>,
}

/// The sub-directory of a directory that holds variants for better processors.
const CAPABILITIES: &[u8] = b"glibc-hwcaps/";

/// How a search in one directory ended. Lives only on the stack between two functions, so its size does not matter.
#[allow(clippy::large_enum_variant)]
pub enum Step {
    /// The object.
    Found(Candidate),
    /// Not here; perhaps an object for another machine was seen.
    Next(Option<HeaderError>),
    /// Something is here, but broken.
    Stop(Refusal),
}

impl Directories {
    /// No directories.
    pub const fn new() -> Directories {
        Directories { table: Vec::new() }
    }

    /// The directory with this path. An empty path is the working directory, as in a search path.
    pub fn intern(&mut self, path: &[u8]) -> Result<DirectoryId, OutOfMemory> {
        let mut trimmed = path;
        while let [rest @ .., b'/'] = trimmed {
            trimmed = rest;
        }
        let whole = match (path, trimmed) {
            ([], _) => Text::new(b"./")?,
            (_, []) => Text::new(b"/")?,
            _ => Text::join(&[trimmed, b"/"])?,
        };
        if let Some(position) = self.table.iter().position(|directory| directory.path == whole) {
            return Ok(DirectoryId(position));
        }
        let directory = Directory { path: whole, presence: Presence::Unknown, capabilities: Presence::Unknown };
        try_push(&mut self.table, directory)?;
        Ok(DirectoryId(self.table.len() - 1))
    }

    /// The path of a directory, with its final slash.
    pub fn path(&self, id: DirectoryId) -> &[u8] {
        self.table.get(id.0).map_or(&[], |directory| directory.path.as_bytes())
    }

    /// Looks for `name` in a directory: first in the variants for the processor's levels, best first.
    pub fn search(&mut self, id: DirectoryId, name: &[u8], levels: &dyn Fn() -> &'static [Level]) -> Step {
        let Some(directory) = self.table.get_mut(id.0) else {
            return Step::Next(None);
        };
        if directory.presence == Presence::Absent {
            return Step::Next(None);
        }
        let mut foreign = None;
        match directory.search_capabilities(name, levels) {
            Step::Next(seen) => foreign = foreign.or(seen),
            end => return end,
        }
        if directory.presence == Presence::Absent {
            return Step::Next(foreign);
        }
        match directory.try_open(&[], name) {
            Step::Next(seen) => Step::Next(foreign.or(seen)),
            end => {
                directory.presence = Presence::Present;
                end
            }
        }
    }
}

impl Directory {
    fn search_capabilities(&mut self, name: &[u8], levels: &dyn Fn() -> &'static [Level]) -> Step {
        if self.capabilities == Presence::Unknown {
            self.capabilities = match self.exists(CAPABILITIES) {
                Ok(true) => Presence::Present,
                Ok(false) => Presence::Absent,
                Err(error) => return Step::Stop(error.into()),
            };
            if self.capabilities == Presence::Absent && self.presence == Presence::Unknown {
                self.presence = match self.exists(b"") {
                    Ok(true) => Presence::Present,
                    Ok(false) => Presence::Absent,
                    Err(error) => return Step::Stop(error.into()),
                };
            }
        }
        let mut foreign = None;
        if self.capabilities == Presence::Present {
            self.presence = Presence::Present;
            for level in levels() {
                match self.try_open(&[CAPABILITIES, level.name().as_bytes(), b"/"], name) {
                    Step::Next(seen) => foreign = foreign.or(seen),
                    end => return end,
                }
            }
        }
        Step::Next(foreign)
    }

    fn exists(&self, below: &[u8]) -> Result<bool, OutOfMemory> {
        let path = Text::join(&[self.path.as_bytes(), below])?;
        Ok(file::status(path.as_c_str()).is_ok_and(|status| status.is_directory()))
    }

    fn try_open(&self, below: &[&[u8]], name: &[u8]) -> Step {
        let mut path = Vec::new();
        for part in [self.path.as_bytes()].iter().chain(below).chain(&[name]) {
            if let Err(error) = crate::fallible::try_extend(&mut path, part) {
                return Step::Stop(error.into());
            }
        }
        let path = match Text::new(&path) {
            Ok(path) => path,
            Err(error) => return Step::Stop(error.into()),
        };
        match open::open(path) {
            Ok(candidate) => Step::Found(candidate),
            Err(Refusal::Absent(Errno::NOENT | Errno::ACCES | Errno::NOTDIR)) => Step::Next(None),
            Err(Refusal::Foreign(error)) => Step::Next(Some(error)),
            Err(refusal) => Step::Stop(refusal),
        }
    }
}
