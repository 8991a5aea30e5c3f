//! What can go wrong while loading and linking: small values that name the file and the reason. Their
//! texts are those of glibc where glibc has one (people grep for them); they are rendered only at the edge.

use crate::fallible::OutOfMemory;
use crate::static_tls::NoRoom;
use crate::text::{Bytes, Text};
use core::fmt;
use rtld_elf::dynamic::DynamicError;
use rtld_elf::header::HeaderError;
use rtld_elf::segments::SegmentError;
use rtld_sys::Errno;

/// One object that could not be loaded or linked.
#[derive(Debug)]
pub struct Error {
    /// The object or the name it was asked for by; empty when it has none.
    pub file: Text,
    /// Why.
    pub reason: Reason,
}

/// Why an object could not be loaded or linked.
#[derive(Debug)]
pub enum Reason {
    /// The file could not be opened.
    Open(Errno),
    /// The file could not be read.
    Read(Errno),
    /// The ELF header is not one for us.
    Header(HeaderError),
    /// A segment or the header table is impossible.
    Segments(SegmentError),
    /// The dynamic section is damaged.
    Dynamic(DynamicError),
    /// A mapping failed.
    Map(Errno),
    /// Zero pages could not be mapped.
    ZeroFill(Errno),
    /// A protection could not be changed.
    Protect(Errno),
    /// A text segment could not be made writable for its relocations.
    TextWritable(Errno),
    /// The stack could not be made executable as the object asks.
    ExecutableStack(Errno),
    /// The thread pointer could not be set.
    ThreadPointer(Errno),
    /// No memory.
    OutOfMemory,
    /// There is no dynamic section where one is needed.
    NoDynamicSection,
    /// The file is a program with fixed addresses.
    NotALibrary,
    /// The file is a position-independent program.
    PositionIndependentProgram,
    /// DT_RPATH and the like hold a token in a place where it cannot be expanded.
    EmptyExpansion,
    /// A symbol has no definition.
    UndefinedSymbol {
        /// Its name.
        name: Text,
        /// The version asked for; empty for none.
        version: Text,
    },
    /// A relocation names a symbol beyond the symbol table.
    SymbolIndex {
        /// The index in the relocation.
        symbol: u32,
        /// r_offset.
        offset: u64,
    },
    /// A relocation writes outside the writable segments.
    RelocationTarget {
        /// Relocation type.
        kind: u32,
        /// r_offset.
        offset: u64,
    },
    /// A relocation type that the x86-64 psABI does not have for us.
    RelocationType {
        /// Relocation type.
        kind: u32,
        /// r_offset.
        offset: u64,
    },
    /// A relocation type that may not stand in the PLT's table.
    PltRelocationType {
        /// Relocation type.
        kind: u32,
    },
    /// A value does not fit into the field of its relocation.
    Overflow {
        /// Relocation type.
        kind: u32,
        /// The symbol; empty for none.
        name: Text,
    },
    /// A copy relocation in something that is not the program.
    CopyOutsideProgram {
        /// The symbol.
        name: Text,
    },
    /// A thread-local reference to a symbol that is not thread-local, or the reverse.
    NotThreadLocal {
        /// The symbol; empty for none.
        name: Text,
    },
    /// An indirect function's resolver is not inside executable memory.
    ResolverOutside {
        /// The resolver's address.
        address: usize,
    },
    /// An indirect function's resolver gave an address that is not inside executable memory.
    ResolverResult {
        /// The indirect function; empty where the relocation has no symbol.
        name: Text,
        /// What the resolver returned.
        result: usize,
    },
    /// An initialiser or finaliser is not inside executable memory.
    FunctionOutside {
        /// Its address.
        address: usize,
    },
    /// A function that is called is defined outside the object that defines it.
    DefinitionOutside {
        /// The function.
        name: Text,
        /// Its address.
        address: usize,
    },
    /// The object says that it cannot be opened at run time (DF_1_NOOPEN).
    NotForOpen,
    /// The static TLS block has no room for a module.
    StaticTls(NoRoom),
    /// The sizes of the start-up objects' thread-local storage are impossible.
    TlsLayout,
    /// The C library's data are not where they must be.
    CLibraryLayout,
    /// The dynamic linker was given its own file as the program.
    Ourselves,
}

/// Which sentence a reason is introduced by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// `PROGRAM: error while loading shared libraries: FILE: ...`
    Load,
    /// `PROGRAM: symbol lookup error: FILE: ...`
    SymbolLookup,
}

impl Reason {
    /// The sentence this reason belongs to.
    pub fn class(&self) -> Class {
        match self {
            Reason::UndefinedSymbol { .. } => Class::SymbolLookup,
            _ => Class::Load,
        }
    }

    /// Attributes the reason to a file.
    pub fn of(self, file: &[u8]) -> Error {
        // With no memory for the name the reason alone is still worth telling.
        Error { file: Text::new(file).unwrap_or(Text::empty()), reason: self }
    }
}

impl From<OutOfMemory> for Reason {
    fn from(_: OutOfMemory) -> Reason {
        Reason::OutOfMemory
    }
}

impl From<HeaderError> for Reason {
    fn from(error: HeaderError) -> Reason {
        Reason::Header(error)
    }
}

impl From<SegmentError> for Reason {
    fn from(error: SegmentError) -> Reason {
        Reason::Segments(error)
    }
}

impl From<DynamicError> for Reason {
    fn from(error: DynamicError) -> Reason {
        Reason::Dynamic(error)
    }
}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Error {
        Error { file: Text::empty(), reason: Reason::OutOfMemory }
    }
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Error {
        Error { file: Text::empty(), reason }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}: ", self.file)?;
        }
        write!(f, "{}", self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Open(error) => write!(f, "cannot open shared object file: {error}"),
            Reason::Read(error) => write!(f, "cannot read file data: {error}"),
            Reason::Header(error) => write!(f, "{error}"),
            Reason::Segments(error) => write!(f, "{error}"),
            Reason::Dynamic(error) => write!(f, "{error}"),
            Reason::Map(error) => write!(f, "failed to map segment from shared object: {error}"),
            Reason::ZeroFill(error) => write!(f, "cannot map zero-fill pages: {error}"),
            Reason::Protect(error) => write!(f, "cannot change memory protections: {error}"),
            Reason::TextWritable(error) => {
                write!(f, "cannot make segment writable for relocation: {error}")
            }
            Reason::ExecutableStack(error) => {
                write!(f, "cannot enable executable stack as shared object requires: {error}")
            }
            Reason::ThreadPointer(error) => {
                write!(f, "cannot set up thread-local storage: {error}")
            }
            Reason::OutOfMemory => f.write_str("cannot allocate memory"),
            Reason::NoDynamicSection => f.write_str("object file has no dynamic section"),
            Reason::NotALibrary => f.write_str("cannot dynamically load executable"),
            Reason::PositionIndependentProgram => {
                f.write_str("cannot dynamically load position-independent executable")
            }
            Reason::EmptyExpansion => f.write_str("empty dynamic string token substitution"),
            Reason::UndefinedSymbol { name, version } if version.is_empty() => {
                write!(f, "undefined symbol: {name}")
            }
            Reason::UndefinedSymbol { name, version } => {
                write!(f, "undefined symbol: {name}, version {version}")
            }
            Reason::SymbolIndex { symbol, offset } => {
                write!(
                    f,
                    "relocation at offset {offset:#x} names symbol {symbol}, which the symbol table does not have"
                )
            }
            Reason::RelocationTarget { kind, offset } => {
                write!(f, "relocation of type {kind:#x} at offset {offset:#x} is outside the writable segments")
            }
            Reason::RelocationType { kind, offset } => {
                write!(f, "unsupported relocation type {kind:#x} at offset {offset:#x}")
            }
            Reason::PltRelocationType { kind } => {
                write!(f, "unexpected PLT reloc type {kind:#04x}")
            }
            Reason::Overflow { kind, name } => {
                let kind = rtld_elf::relocation::Name(*kind);
                write!(f, "Symbol `{name}' causes overflow in {kind} relocation")
            }
            Reason::CopyOutsideProgram { name } => {
                write!(f, "copy relocation against `{name}' outside the program")
            }
            Reason::NotThreadLocal { name } => {
                write!(f, "thread-local and other references to symbol `{name}' are mixed")
            }
            Reason::ResolverOutside { address } => {
                write!(f, "IFUNC resolver at {address:#x} is not inside executable memory")
            }
            Reason::ResolverResult { name, result } => {
                let name: &[u8] = if name.is_empty() { b"(no symbol)" } else { name.as_bytes() };
                let name = Bytes(name);
                write!(f, "IFUNC resolver of {name} returned {result:#x}, which is not inside executable memory")
            }
            Reason::FunctionOutside { address } => {
                write!(f, "initialiser or finaliser at {address:#x} is not inside executable memory")
            }
            Reason::DefinitionOutside { name, address } => {
                write!(f, "function `{name}' at {address:#x} is not inside executable memory")
            }
            Reason::Ourselves => f.write_str("loader cannot load itself"),
            Reason::StaticTls(NoRoom { asked, alignment, left }) => write!(
                f,
                "cannot allocate memory in static TLS block ({asked} bytes aligned to {alignment} asked for, {left} left)"
            ),
            Reason::NotForOpen => f.write_str("shared object cannot be dlopen()ed"),
            Reason::TlsLayout => f.write_str("thread-local storage of impossible size"),
            Reason::CLibraryLayout => f.write_str("C library data outside their place"),
        }
    }
}
