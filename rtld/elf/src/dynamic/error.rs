//! Why a dynamic section is refused, in the words that a user sees: the tag and its value.

use core::fmt;

use crate::hash::HashError;
use crate::tag;
use crate::version::VersionError;

/// Why an object's dynamic section is refused. `Display` is the text after "FILE: ".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DynamicError {
    /// PT_DYNAMIC is in no segment that can be read.
    Unreadable,
    /// No DT_NULL inside PT_DYNAMIC.
    NotTerminated,
    /// What `tag` points to is not, with its size, inside one segment that can be read.
    Outside {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
    },
    /// What `tag` points to is not inside an executable segment.
    NotExecutable {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
    },
    /// What `tag` points to is not inside a segment that can be written.
    NotWritable {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
    },
    /// The size of an entry is not that of x86-64.
    EntrySize {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
        /// Bytes.
        expected: u64,
    },
    /// The size of a table is not a multiple of its entry's.
    TableSize {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
        /// Bytes of an entry.
        entry: u64,
    },
    /// A tag is absent that another one needs.
    Missing {
        /// DT_* that is absent.
        tag: u64,
        /// DT_* that needs it.
        needed_by: u64,
    },
    /// A name's offset is not inside the string table, or the name has no end there.
    Name {
        /// DT_*.
        tag: u64,
        /// Its value.
        value: u64,
    },
    /// Relocations without addend.
    Rel,
    /// DT_PLTREL is not DT_RELA.
    PltRelocationType(u64),
    /// DT_GNU_HASH or DT_HASH.
    Hash(HashError),
    /// DT_VERDEF or DT_VERNEED.
    Version(VersionError),
}

impl fmt::Display for DynamicError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            DynamicError::Unreadable => formatter.write_str("dynamic section is not inside any loaded segment"),
            DynamicError::NotTerminated => formatter.write_str("dynamic section is not terminated"),
            DynamicError::Outside { tag, value } => {
                write!(formatter, "{} {value:#x} is not inside any loaded segment", tag::name(tag))
            }
            DynamicError::NotExecutable { tag, value } => {
                write!(formatter, "{} {value:#x} is not inside an executable segment", tag::name(tag))
            }
            DynamicError::NotWritable { tag, value } => {
                write!(formatter, "{} {value:#x} is not inside a writable segment", tag::name(tag))
            }
            DynamicError::EntrySize { tag, value, expected } => {
                write!(formatter, "{} is {value}, expected {expected}", tag::name(tag))
            }
            DynamicError::TableSize { tag, value, entry } => {
                write!(formatter, "{} is {value}, not a multiple of {entry}", tag::name(tag))
            }
            DynamicError::Missing { tag, needed_by } => {
                write!(formatter, "{} without {}", tag::name(needed_by), tag::name(tag))
            }
            DynamicError::Name { tag, value } => {
                write!(formatter, "{} name {value:#x} is not inside the string table", tag::name(tag))
            }
            DynamicError::Rel => formatter.write_str("DT_REL relocations are not used on x86-64"),
            DynamicError::PltRelocationType(kind) => {
                write!(formatter, "unexpected PLT reloc type {kind:#x}")
            }
            DynamicError::Hash(error) => error.fmt(formatter),
            DynamicError::Version(error) => error.fmt(formatter),
        }
    }
}

impl core::error::Error for DynamicError {}
