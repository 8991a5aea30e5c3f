//! Why a C library cannot be hosted, and the one line that says so.
//!
//! Owns the texts. Finds nothing out: `recognise` does.

use core::fmt;

use crate::table::TABLE;

/// Why the C library cannot be hosted. `Display` is the text after the program's name, one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported<'a> {
    /// What libc.so.6 says that it is: N of its newest `GLIBC_2.N`; a row's name where the sizes agree with one.
    pub found: Found,
    /// What does not fit.
    pub reason: Reason<'a>,
}

/// What can be said about a C library's release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// No version `GLIBC_2.N` is defined.
    Nothing,
    /// The newest is `GLIBC_2.N`.
    Definition(u16),
    /// A release of the table.
    Release(&'static str),
}

/// What does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason<'a> {
    /// The loader file does not define a structure or function that every glibc has.
    NoSymbol(&'static str),
    /// No row has this version and these sizes of `_rtld_global` and `_rtld_global_ro`.
    Unknown {
        /// Size of `_rtld_global`.
        global: u64,
        /// Size of `_rtld_global_ro`.
        read_only: u64,
    },
    /// libc.so.6 needs a private symbol that the loader file does not define: the two are not of one build.
    PrivateImport(&'a [u8]),
    /// A number that the files give away is not the table's.
    Field {
        /// What was looked at.
        name: &'static str,
        /// What is there.
        found: u64,
        /// What the table, or the release's sources, say.
        expected: u64,
    },
    /// A function pointer does not point to code of the loader file.
    NotCode(&'static str),
    /// Something that must be read or written is not in a segment that allows it.
    Unreachable(&'static str),
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Nothing => formatter.write_str("no glibc"),
            Found::Definition(minor) => write!(formatter, "glibc 2.{minor}"),
            Found::Release(name) => write!(formatter, "glibc {name}"),
        }
    }
}

/// Writes a name of a file with everything but printable ASCII left out.
fn write_name(formatter: &mut fmt::Formatter<'_>, name: &[u8]) -> fmt::Result {
    name.iter()
        .filter(|byte| byte.is_ascii_graphic())
        .try_for_each(|&byte| fmt::Write::write_char(formatter, byte.into()))
}

impl fmt::Display for Unsupported<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unsupported C library: found {} (", self.found)?;
        match self.reason {
            Reason::NoSymbol(name) => write!(formatter, "no symbol {name} in ld-linux-x86-64.so.2")?,
            Reason::Unknown { global, read_only } => {
                write!(formatter, "_rtld_global {global} bytes, _rtld_global_ro {read_only} bytes")?;
            }
            Reason::PrivateImport(name) => {
                formatter.write_str("libc.so.6 needs ")?;
                write_name(formatter, name)?;
                formatter.write_str(", which ld-linux-x86-64.so.2 does not define")?;
            }
            Reason::Field { name, found, expected } => write!(formatter, "{name} is {found}, expected {expected}")?,
            Reason::NotCode(name) => write!(formatter, "{name} does not point to code")?,
            Reason::Unreachable(name) => write!(formatter, "{name} is outside the file's segments")?,
        }
        formatter.write_str("); supported: glibc ")?;
        for (index, row) in TABLE.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(formatter, "{separator}{}", row.name)?;
        }
        Ok(())
    }
}

impl core::error::Error for Unsupported<'_> {}
