//! ELF files of x86-64 as checked views: what the bytes of an object say, and whether they may be believed.
//!
//! No allocation, no input or output, no globals, no panic. Every number that comes from a file is hostile until it was
//! checked once, here; what leaves this crate is either a view that cannot read outside the object or an error whose text
//! is what a user sees. All `unsafe` is in [`pod`].
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod cache;
pub mod dynamic;
pub mod hash;
pub mod header;
pub mod pod;
pub mod relocation;
pub mod segments;
pub mod symbol;
pub mod tag;
pub mod version;

pub use dynamic::{Dynamic, DynamicError};
pub use hash::{GnuHash, Hash, SysvHash, gnu_hash, sysv_hash};
pub use header::{FileHeader, FileKind, HeaderError};
pub use pod::{Image, Pod, StringTable, Table};
pub use segments::{Layout, Range, SegmentError, Tls};
pub use symbol::{SymbolTable, SymbolView};
pub use version::Versions;

/// The ELF records and constants, as goblin defines them.
pub use goblin::elf64::{
    dynamic::Dyn,
    header::Header,
    program_header::{PF_R, PF_W, PF_X, ProgramHeader},
    reloc::Rela,
    sym::Sym,
};
