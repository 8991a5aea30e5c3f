//! Writer and editor of odd ELF files, for shapes that no linker is willing to produce.
//!
//! Owns: the record layouts it needs (gABI, psABI), [`Image`] (edit what a linker made) and [`Library`] (a shared object from nothing).
//! May not: judge a file. Whatever a test asks for is written, legal or not.

mod format;
mod image;
mod library;
mod tables;

pub use format::{DynamicTag, ProgramHeader, Protection, Relocation, SegmentKind, Type};
pub use image::Image;
pub use library::{Hashes, Library, Segment};
pub use tables::{Binding, Place, Symbol, SymbolType};
