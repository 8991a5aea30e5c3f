//! The ELF header: is this a file that can run here at all?
//!
//! The order of the checks and their texts are those of glibc 2.36, because people search for them (machines excepted:
//! glibc passes over a file of another machine in silence, we name it). Section headers are never looked at.

use core::fmt;

use goblin::elf64::header::{
    EI_ABIVERSION, EI_CLASS, EI_DATA, EI_OSABI, EI_VERSION, ELFCLASS64, ELFDATA2LSB, ELFMAG, ELFOSABI_LINUX,
    ELFOSABI_NONE, EM_X86_64, ET_DYN, ET_EXEC, EV_CURRENT, SIZEOF_EHDR,
};
use goblin::elf64::program_header::SIZEOF_PHDR;

use crate::{Header, Table};

/// First byte of e_ident that has no meaning yet (gABI: EI_PAD).
const EI_PAD: usize = 9;
/// glibc 2.36 knows EI_ABIVERSION 0 to 3 for ELFOSABI_GNU (2: STB_GNU_UNIQUE, IFUNC and absolute symbols; 3: DT_RELR's marker).
const GNU_ABI_VERSIONS: u8 = 4;

/// What e_type says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// ET_EXEC: its addresses are absolute.
    Executable,
    /// ET_DYN: a library or a position-independent program.
    SharedObject,
}

/// What is needed of a header that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHeader {
    /// Whether the object may be placed anywhere.
    pub kind: FileKind,
    /// e_entry, a virtual address; 0 for none. Not checked.
    pub entry: u64,
    /// Offset in the file of the program headers.
    pub program_header_offset: u64,
    /// Number of program headers.
    pub program_header_count: u16,
}

impl FileHeader {
    /// Size in bytes of the program headers in the file.
    pub const fn program_headers_size(&self) -> usize {
        self.program_header_count as usize * SIZEOF_PHDR
    }
}

/// Why a file is refused. `Display` is the text after "FILE: ".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// There is no whole header.
    TooShort,
    /// Not an ELF file.
    Magic,
    /// Not ELFCLASS64.
    Class,
    /// Not little-endian.
    DataEncoding,
    /// EI_VERSION is not 1.
    IdentVersion,
    /// EI_OSABI is neither System V nor GNU/Linux.
    OsAbi,
    /// EI_ABIVERSION is unknown.
    AbiVersion,
    /// A byte from EI_PAD on is not 0.
    Padding,
    /// e_version is not 1.
    Version,
    /// Made for another machine (e_machine).
    Machine(u16),
    /// e_type is neither ET_DYN nor ET_EXEC.
    Kind,
    /// e_phentsize is not 56.
    ProgramHeaderSize,
    /// The program headers are not all inside the file.
    ProgramHeadersOutside,
    /// e_phoff is no offset in a file: 2^63 or more.
    ProgramHeaderOffset,
}

/// The name of a machine as people write it, for the common ones.
const fn machine_name(machine: u16) -> Option<&'static str> {
    use goblin::elf64::header as machines;
    Some(match machine {
        machines::EM_386 => "i386",
        machines::EM_ARM => "ARM",
        machines::EM_AARCH64 => "AArch64",
        machines::EM_RISCV => "RISC-V",
        machines::EM_PPC => "PowerPC",
        machines::EM_PPC64 => "PowerPC64",
        machines::EM_S390 => "S/390",
        machines::EM_MIPS => "MIPS",
        machines::EM_SPARC => "SPARC",
        machines::EM_SPARCV9 => "SPARC64",
        machines::EM_IA_64 => "IA-64",
        machines::EM_68K => "m68k",
        0x9026 => "Alpha",
        machines::EM_PARISC => "PA-RISC",
        machines::EM_SH => "SuperH",
        machines::EM_BPF => "BPF",
        // Younger than goblin's list (gABI registry).
        258 => "LoongArch",
        _ => return None,
    })
}

impl fmt::Display for HeaderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            HeaderError::TooShort => "file too short",
            HeaderError::Magic => "invalid ELF header",
            HeaderError::Class => "wrong ELF class: ELFCLASS32",
            HeaderError::DataEncoding => "ELF file data encoding not little-endian",
            HeaderError::IdentVersion => "ELF file version ident does not match current one",
            HeaderError::OsAbi => "ELF file OS ABI invalid",
            HeaderError::AbiVersion => "ELF file ABI version invalid",
            HeaderError::Padding => "nonzero padding in e_ident",
            HeaderError::Version => "ELF file version does not match current one",
            HeaderError::Machine(machine) => {
                return match machine_name(machine) {
                    Some(name) => write!(formatter, "wrong ELF machine: {name} (need x86-64)"),
                    None => write!(formatter, "wrong ELF machine: {machine:#x} (need x86-64)"),
                };
            }
            HeaderError::Kind => "only ET_DYN and ET_EXEC can be loaded",
            HeaderError::ProgramHeaderSize => "ELF file's phentsize not the expected size",
            HeaderError::ProgramHeadersOutside => "cannot read file data",
            // What the system says to glibc of such an offset.
            HeaderError::ProgramHeaderOffset => "cannot read file data: Invalid argument",
        };
        formatter.write_str(text)
    }
}

impl core::error::Error for HeaderError {}

/// Checks the ELF header at the start of `prefix`, the first bytes of a file (it may be short: then the file is too).
///
/// `file_size` in bytes, if it is known: the program headers must lie inside.
pub fn check(prefix: &[u8], file_size: Option<u64>) -> Result<FileHeader, HeaderError> {
    let header: Header = Table::from_bytes(prefix).get(0).ok_or(HeaderError::TooShort)?;
    let ident = |index: usize| header.e_ident.get(index).copied();
    if !header.e_ident.starts_with(ELFMAG) {
        return Err(HeaderError::Magic);
    }
    if ident(EI_CLASS) != Some(ELFCLASS64) {
        return Err(HeaderError::Class);
    }
    if ident(EI_DATA) != Some(ELFDATA2LSB) {
        return Err(HeaderError::DataEncoding);
    }
    if ident(EI_VERSION) != Some(EV_CURRENT) {
        return Err(HeaderError::IdentVersion);
    }
    let abi_versions = match ident(EI_OSABI) {
        Some(ELFOSABI_NONE) => 1,
        Some(ELFOSABI_LINUX) => GNU_ABI_VERSIONS,
        _ => return Err(HeaderError::OsAbi),
    };
    if ident(EI_ABIVERSION).is_none_or(|version| version >= abi_versions) {
        return Err(HeaderError::AbiVersion);
    }
    if header.e_ident.iter().skip(EI_PAD).any(|&byte| byte != 0) {
        return Err(HeaderError::Padding);
    }
    if header.e_version != u32::from(EV_CURRENT) {
        return Err(HeaderError::Version);
    }
    if header.e_machine != EM_X86_64 {
        return Err(HeaderError::Machine(header.e_machine));
    }
    let kind = match header.e_type {
        ET_DYN => FileKind::SharedObject,
        ET_EXEC => FileKind::Executable,
        _ => return Err(HeaderError::Kind),
    };
    if usize::from(header.e_phentsize) != SIZEOF_PHDR {
        return Err(HeaderError::ProgramHeaderSize);
    }
    let checked = FileHeader {
        kind,
        entry: header.e_entry,
        program_header_offset: header.e_phoff,
        program_header_count: header.e_phnum,
    };
    // An offset is signed for the system, so that this sum cannot wrap.
    if i64::try_from(header.e_phoff).is_err() {
        return Err(HeaderError::ProgramHeaderOffset);
    }
    let end = header.e_phoff.saturating_add(checked.program_headers_size() as u64);
    if file_size.is_some_and(|size| end > size) {
        return Err(HeaderError::ProgramHeadersOutside);
    }
    Ok(checked)
}

/// Size in bytes of the ELF header.
pub const HEADER_SIZE: usize = SIZEOF_EHDR;
