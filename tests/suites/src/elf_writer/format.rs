//! ELF64 little-endian records as the gABI ("Program Header", "Relocation", "Dynamic Section") and the x86-64 psABI lay them out.
//!
//! Owns: the numbers and the bytes of single records. May not know where in a file a record stands.

use anyhow::Context as _;

/// Bytes of an ELF64 file header.
pub const FILE_HEADER_SIZE: u64 = 64;
/// Bytes of an ELF64 program header.
pub const PROGRAM_HEADER_SIZE: usize = 56;
/// Bytes of an ELF64 dynamic entry.
pub const DYNAMIC_ENTRY_SIZE: usize = 16;

/// File offsets of the fields of the ELF64 file header that are edited.
pub mod header_field {
    /// `e_phoff`, 8 bytes.
    pub const PROGRAM_HEADER_OFFSET: u64 = 32;
    /// `e_shoff`, 8 bytes.
    pub const SECTION_HEADER_OFFSET: u64 = 40;
    /// `e_phnum`, 2 bytes.
    pub const PROGRAM_HEADER_COUNT: u64 = 56;
    /// `e_shnum`, 2 bytes; `e_shstrndx` follows it.
    pub const SECTION_HEADER_COUNT: u64 = 60;
    /// `e_shstrndx`, 2 bytes.
    pub const SECTION_NAMES_INDEX: u64 = 62;
}

/// `p_type` values.
#[allow(missing_docs, reason = "the gABI's own names")]
pub struct SegmentKind;
#[allow(missing_docs, reason = "the gABI's own names")]
impl SegmentKind {
    pub const LOAD: u32 = 1;
    pub const DYNAMIC: u32 = 2;
    pub const PHDR: u32 = 6;
    pub const TLS: u32 = 7;
    pub const GNU_STACK: u32 = 0x6474_e551;
    pub const GNU_RELRO: u32 = 0x6474_e552;
}

/// `p_flags` values.
pub struct Protection;
#[allow(missing_docs, reason = "the gABI's own names")]
impl Protection {
    pub const R: u32 = 4;
    pub const RW: u32 = 6;
    pub const RX: u32 = 5;
}

/// `d_tag` values.
pub struct DynamicTag;
#[allow(missing_docs, reason = "the gABI's own names")]
impl DynamicTag {
    pub const NULL: u64 = 0;
    pub const PLTRELSZ: u64 = 2;
    pub const PLTGOT: u64 = 3;
    pub const HASH: u64 = 4;
    pub const STRTAB: u64 = 5;
    pub const SYMTAB: u64 = 6;
    pub const RELA: u64 = 7;
    pub const RELASZ: u64 = 8;
    pub const RELAENT: u64 = 9;
    pub const STRSZ: u64 = 10;
    pub const SYMENT: u64 = 11;
    pub const SONAME: u64 = 14;
    pub const PLTREL: u64 = 20;
    pub const TEXTREL: u64 = 22;
    pub const JMPREL: u64 = 23;
    pub const FLAGS: u64 = 30;
    pub const RELRSZ: u64 = 35;
    pub const RELR: u64 = 36;
    pub const RELRENT: u64 = 37;
    pub const GNU_HASH: u64 = 0x6fff_fef5;
    pub const RELACOUNT: u64 = 0x6fff_fff9;
}

/// `R_X86_64_*` numbers (psABI table "Relocation Types").
pub struct Type;
#[allow(missing_docs, reason = "the psABI's own names")]
impl Type {
    pub const NONE: u32 = 0;
    pub const R64: u32 = 1;
    pub const PC32: u32 = 2;
    pub const COPY: u32 = 5;
    pub const GLOB_DAT: u32 = 6;
    pub const JUMP_SLOT: u32 = 7;
    pub const RELATIVE: u32 = 8;
    pub const R32: u32 = 10;
    pub const R32S: u32 = 11;
    pub const DTPMOD64: u32 = 16;
    pub const DTPOFF64: u32 = 17;
    pub const TPOFF64: u32 = 18;
    pub const PC64: u32 = 24;
    pub const SIZE32: u32 = 32;
    pub const SIZE64: u32 = 33;
    pub const TLSDESC: u32 = 36;
    pub const IRELATIVE: u32 = 37;
}

/// One program header, in bytes and addresses as in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramHeader {
    /// `p_type`, see [`SegmentKind`].
    pub kind: u32,
    /// `p_flags`, see [`Protection`].
    pub flags: u32,
    /// `p_offset`.
    pub offset: u64,
    /// `p_vaddr` (and `p_paddr`).
    pub address: u64,
    /// `p_filesz`.
    pub file_size: u64,
    /// `p_memsz`.
    pub memory_size: u64,
    /// `p_align`.
    pub alignment: u64,
}

impl ProgramHeader {
    /// The record as it stands in a file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PROGRAM_HEADER_SIZE);
        bytes.extend(self.kind.to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        for field in [self.offset, self.address, self.address, self.file_size, self.memory_size, self.alignment] {
            bytes.extend(field.to_le_bytes());
        }
        bytes
    }

    /// The record that stands at `offset` of `file`.
    pub fn read(file: &[u8], offset: u64) -> anyhow::Result<Self> {
        Ok(Self {
            kind: u32::try_from(get(file, offset, 4)?)?,
            flags: u32::try_from(get(file, offset + 4, 4)?)?,
            offset: get(file, offset + 8, 8)?,
            address: get(file, offset + 16, 8)?,
            file_size: get(file, offset + 32, 8)?,
            memory_size: get(file, offset + 40, 8)?,
            alignment: get(file, offset + 48, 8)?,
        })
    }
}

/// One `Elf64_Rela`.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    /// `r_offset`.
    pub address: u64,
    /// Relocation type, see [`Type`].
    pub kind: u32,
    /// Index into the dynamic symbol table; 0 is no symbol.
    pub symbol: u32,
    /// `r_addend`.
    pub addend: i64,
}

impl Relocation {
    /// Bytes of one.
    pub const SIZE: u64 = 24;

    /// A record of type `kind` at `address`.
    #[must_use]
    pub fn new(address: u64, kind: u32, symbol: u32, addend: i64) -> Self {
        Self { address, kind, symbol, addend }
    }

    /// The record that stands at `offset` of `file`.
    pub fn read(file: &[u8], offset: u64) -> anyhow::Result<Self> {
        Ok(Self {
            address: get(file, offset, 8)?,
            kind: u32::try_from(get(file, offset + 8, 4)?)?,
            symbol: u32::try_from(get(file, offset + 12, 4)?)?,
            addend: get(file, offset + 16, 8)?.cast_signed(),
        })
    }

    /// The record as it stands in a file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.address.to_le_bytes().to_vec();
        bytes.extend(((u64::from(self.symbol) << 32) | u64::from(self.kind)).to_le_bytes());
        bytes.extend(self.addend.to_le_bytes());
        bytes
    }
}

/// The little-endian number of `width` (at most 8) bytes at `offset`.
pub fn get(file: &[u8], offset: u64, width: usize) -> anyhow::Result<u64> {
    let start = usize::try_from(offset)?;
    let field =
        file.get(start..start + width).with_context(|| format!("offset {offset:#x} is past the end of the file"))?;
    Ok(field.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

/// Write `bytes` at `offset`, which must lie in the file.
pub fn put(file: &mut [u8], offset: u64, bytes: &[u8]) -> anyhow::Result<()> {
    let start = usize::try_from(offset)?;
    let field = file
        .get_mut(start..start + bytes.len())
        .with_context(|| format!("offset {offset:#x} is past the end of the file"))?;
    field.copy_from_slice(bytes);
    Ok(())
}
