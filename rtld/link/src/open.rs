//! Opens a file and sees whether it is an object for us, before anything of it is mapped.

use crate::error::{Error, Reason};
use crate::fallible::OutOfMemory;
use crate::map::Prefix;
use crate::object::FileIdentity;
use crate::text::Text;
use rtld_elf::header::HeaderError;
use rtld_sys::Errno;
use rtld_sys::file::{File, Status};

/// A file that is open and has an ELF header for this machine.
pub struct Candidate {
    /// The path it was opened by.
    pub path: Text,
    /// The open file.
    pub file: File,
    /// Its status.
    pub status: Status,
    /// Its first bytes.
    pub prefix: Prefix,
}

impl Candidate {
    /// Which file it is.
    pub fn identity(&self) -> FileIdentity {
        FileIdentity { device: self.status.device, inode: self.status.inode }
    }
}

/// Why a path gives no object.
pub enum Refusal {
    /// Nothing there, or nothing that may be read: a search goes on.
    Absent(Errno),
    /// An object for another class or machine: a search goes on and remembers.
    Foreign(HeaderError),
    /// Something that is broken: a search ends. The error names the file, unless it could not even be opened.
    Broken(Error),
}

impl Refusal {
    /// The error to tell when there is no other place to look for `name`.
    pub fn error(self, name: &[u8]) -> Error {
        match self {
            Refusal::Absent(error) => Reason::Open(error).of(name),
            Refusal::Foreign(error) => Reason::Header(error).of(name),
            Refusal::Broken(error) if error.file.is_empty() => error.reason.of(name),
            Refusal::Broken(error) => error,
        }
    }
}

impl From<OutOfMemory> for Refusal {
    fn from(error: OutOfMemory) -> Refusal {
        Refusal::Broken(Error::from(error))
    }
}

/// Opens `path` and checks its header.
pub fn open(path: Text) -> Result<Candidate, Refusal> {
    let file = File::open(path.as_c_str()).map_err(|error| match error {
        Errno::NOENT | Errno::ACCES | Errno::NOTDIR => Refusal::Absent(error),
        _ => Refusal::Broken(Reason::Open(error).of(b"")),
    })?;
    let broken = |reason: Reason| Refusal::Broken(reason.of(path.as_bytes()));
    let status = file.status().map_err(|error| broken(Reason::Read(error)))?;
    if status.is_directory() {
        return Err(broken(Reason::Read(Errno::ISDIR)));
    }
    let prefix = Prefix::read(&file, status.size).map_err(|reason| match reason {
        Reason::Header(error @ (HeaderError::Class | HeaderError::Machine(_))) => Refusal::Foreign(error),
        reason => broken(reason),
    })?;
    Ok(Candidate { path, file, status, prefix })
}
