//! Edits ELF64 files made by our own compilers: owns finding a header, a dynamic entry or a symbol in a file and
//! overwriting a field of it. It may not be used to judge a loader: it trusts the file, which comes from the linker in
//! the same run, and answers with an error when what it looks for is not there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// Size of one program header, in bytes (gABI, `Elf64_Phdr`).
pub const PROGRAM_HEADER_SIZE: usize = 56;
/// Size of one symbol, in bytes (gABI, `Elf64_Sym`).
pub const SYMBOL_SIZE: usize = 24;
/// Size of one relocation with addend, in bytes (gABI, `Elf64_Rela`).
pub const RELA_SIZE: usize = 24;

/// `p_type` of a loadable segment.
pub const PT_LOAD: u32 = 1;
/// `p_type` of the dynamic segment.
pub const PT_DYNAMIC: u32 = 2;

/// Dynamic tags that the suites edit (gABI, chapter 5; GNU tags after `elf.h`).
pub mod tag {
    /// End of the dynamic array.
    pub const NULL: u64 = 0;
    /// A needed library.
    pub const NEEDED: u64 = 1;
    /// SysV hash table.
    pub const HASH: u64 = 4;
    /// String table.
    pub const STRTAB: u64 = 5;
    /// Symbol table.
    pub const SYMTAB: u64 = 6;
    /// Relocations with addends.
    pub const RELA: u64 = 7;
    /// Their size in bytes.
    pub const RELASZ: u64 = 8;
    /// Size of one.
    pub const RELAENT: u64 = 9;
    /// Size of the string table in bytes.
    pub const STRSZ: u64 = 10;
    /// Size of one symbol.
    pub const SYMENT: u64 = 11;
    /// Address of the initialisation function.
    pub const INIT: u64 = 12;
    /// Relocations of the procedure linkage table.
    pub const JMPREL: u64 = 23;
    /// Array of initialisation functions.
    pub const INIT_ARRAY: u64 = 25;
    /// Size of that array in bytes.
    pub const INIT_ARRAYSZ: u64 = 27;
    /// Search path of its owner alone.
    pub const RUNPATH: u64 = 29;
    /// GNU hash table.
    pub const GNU_HASH: u64 = 0x6fff_fef5;
    /// Auditors of dependencies: a string that the linker stores for us.
    pub const DEPAUDIT: u64 = 0x6fff_fefb;
    /// Version table, one entry a symbol.
    pub const VERSYM: u64 = 0x6fff_fff0;
    /// Versions needed.
    pub const VERNEED: u64 = 0x6fff_fffe;
    /// A tag in the range of the processor that means nothing.
    pub const UNKNOWN: u64 = 0x7fff_0001;
}

/// One entry of the dynamic array.
#[derive(Clone, Copy)]
pub struct DynamicEntry {
    /// Offset in the file of the entry (its value is 8 bytes further).
    pub offset: usize,
    /// `d_tag`.
    pub tag: u64,
    /// `d_val` or `d_ptr`.
    pub value: u64,
}

/// A file in memory.
#[derive(Clone)]
pub struct Image {
    bytes: Vec<u8>,
}

impl Image {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Image> {
        let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        Ok(Image { bytes })
    }

    /// Writes the image to `path` with mode 0755. An existing file is replaced, not changed: it may be mapped.
    pub fn write(&self, path: &Path) -> Result<()> {
        if path.exists() {
            fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
        }
        fs::write(path, &self.bytes).with_context(|| format!("writing {}", path.display()))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Cuts the file to `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// The `width` bytes (1, 2, 4 or 8) at `offset`, as a little-endian number.
    pub fn number(&self, offset: usize, width: usize) -> Result<u64> {
        let Some(field) = offset.checked_add(width).and_then(|end| self.bytes.get(offset..end)) else {
            bail!("no {width} bytes at offset {offset:#x}");
        };
        Ok(field.iter().rev().fold(0, |number, &byte| (number << 8) | u64::from(byte)))
    }

    /// Stores `value` in the `width` bytes at `offset`, little-endian; bits that do not fit are dropped.
    pub fn set(&mut self, offset: usize, width: usize, value: u64) -> Result<()> {
        let Some(field) = offset.checked_add(width).and_then(|end| self.bytes.get_mut(offset..end)) else {
            bail!("no {width} bytes at offset {offset:#x}");
        };
        for (byte, source) in field.iter_mut().zip(value.to_le_bytes()) {
            *byte = source;
        }
        Ok(())
    }

    /// File offsets of all program headers.
    pub fn program_headers(&self) -> Result<Vec<usize>> {
        let first = self.number(32, 8)? as usize;
        let count = self.number(56, 2)? as usize;
        Ok((0..count).map(|index| first + index * PROGRAM_HEADER_SIZE).collect())
    }

    /// File offset of the `skip`-th program header of type `kind`.
    pub fn program_header(&self, kind: u32, skip: usize) -> Result<usize> {
        let mut found = Vec::new();
        for header in self.program_headers()? {
            if self.number(header, 4)? == u64::from(kind) {
                found.push(header);
            }
        }
        found.get(skip).copied().with_context(|| format!("no program header {skip} of type {kind}"))
    }

    /// Where in the file the byte with this address lies.
    pub fn file_offset(&self, address: u64) -> Result<usize> {
        for header in self.program_headers()? {
            if self.number(header, 4)? != u64::from(PT_LOAD) {
                continue;
            }
            let (offset, start, size) =
                (self.number(header + 8, 8)?, self.number(header + 16, 8)?, self.number(header + 32, 8)?);
            if address >= start && address - start < size {
                return Ok((offset + (address - start)) as usize);
            }
        }
        bail!("address {address:#x} is in no PT_LOAD")
    }

    /// All entries of the dynamic array, the first DT_NULL and the spare ones after it included.
    pub fn dynamic_entries(&self) -> Result<Vec<DynamicEntry>> {
        let header = self.program_header(PT_DYNAMIC, 0)?;
        let start = self.number(header + 8, 8)? as usize;
        let size = self.number(header + 32, 8)? as usize;
        (0..size / 16)
            .map(|index| {
                let offset = start + index * 16;
                Ok(DynamicEntry { offset, tag: self.number(offset, 8)?, value: self.number(offset + 8, 8)? })
            })
            .collect()
    }

    /// The first entry with this tag.
    pub fn dynamic(&self, wanted: u64) -> Result<DynamicEntry> {
        let found = self.dynamic_entries()?.into_iter().find(|entry| entry.tag == wanted);
        found.with_context(|| format!("no dynamic entry with tag {wanted:#x}"))
    }

    /// Gives the first entry with tag `from` the tag `to`.
    pub fn retag(&mut self, from: u64, to: u64) -> Result<()> {
        let entry = self.dynamic(from)?;
        self.set(entry.offset, 8, to)
    }

    /// Overwrites the value of the first entry with this tag.
    pub fn set_dynamic(&mut self, wanted: u64, value: u64) -> Result<()> {
        let entry = self.dynamic(wanted)?;
        self.set(entry.offset + 8, 8, value)
    }

    /// File offset of the table that the entry with this tag points to.
    pub fn table(&self, wanted: u64) -> Result<usize> {
        self.file_offset(self.dynamic(wanted)?.value)
    }

    /// The NUL-terminated string at `offset` in the dynamic string table.
    pub fn string(&self, offset: u64) -> Result<String> {
        let start = self.table(tag::STRTAB)? + offset as usize;
        let text = self.bytes.get(start..).context("string offset beyond the file")?;
        let end = text.iter().position(|&byte| byte == 0).context("string without end")?;
        Ok(String::from_utf8_lossy(text.get(..end).context("string without end")?).into_owned())
    }

    /// Number of dynamic symbols: linkers put the string table directly behind the symbol table.
    pub fn symbol_count(&self) -> Result<usize> {
        let symbols = self.table(tag::SYMTAB)?;
        let strings = self.table(tag::STRTAB)?;
        let size = strings.checked_sub(symbols).context("string table before symbol table")?;
        Ok(size / SYMBOL_SIZE)
    }

    /// File offset and index of the dynamic symbol called `name`.
    pub fn symbol(&self, name: &str) -> Result<(usize, usize)> {
        let start = self.table(tag::SYMTAB)?;
        for index in 0..self.symbol_count()? {
            let offset = start + index * SYMBOL_SIZE;
            if self.string(self.number(offset, 4)?)? == name {
                return Ok((offset, index));
            }
        }
        bail!("no dynamic symbol {name}")
    }

    /// Appends a dynamic entry in place of the first DT_NULL, if another DT_NULL follows.
    pub fn append_dynamic(&mut self, tag_value: u64, value: u64) -> Result<()> {
        let entries = self.dynamic_entries()?;
        let mut spare = entries.iter().filter(|entry| entry.tag == tag::NULL);
        let (Some(first), Some(_)) = (spare.next(), spare.next()) else {
            bail!("no spare dynamic entry");
        };
        let offset = first.offset;
        self.set(offset, 8, tag_value)?;
        self.set(offset + 8, 8, value)
    }
}
