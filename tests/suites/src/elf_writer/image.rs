//! Editor of a file that a linker made: its program headers, dynamic entries and length.
//!
//! Owns: the bytes of one file. May not: interpret more of it than the headers and the dynamic section.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context as _;

use super::format::{
    DYNAMIC_ENTRY_SIZE, DynamicTag, PROGRAM_HEADER_SIZE, ProgramHeader, Relocation, SegmentKind, get, header_field, put,
};

/// A linked file, held in memory until it is written.
pub struct Image {
    bytes: Vec<u8>,
}

impl Image {
    /// The file at `path`.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { bytes })
    }

    /// Write it to `path` with mode 0755.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        write_executable(path, &self.bytes)
    }

    /// Length of the file in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// All program headers, in the order of the table.
    pub fn program_headers(&self) -> anyhow::Result<Vec<ProgramHeader>> {
        let table = get(&self.bytes, header_field::PROGRAM_HEADER_OFFSET, 8)?;
        let count = get(&self.bytes, header_field::PROGRAM_HEADER_COUNT, 2)?;
        (0..count).map(|index| ProgramHeader::read(&self.bytes, table + index * PROGRAM_HEADER_SIZE as u64)).collect()
    }

    /// The first program header of type `kind`.
    pub fn program_header(&self, kind: u32) -> anyhow::Result<ProgramHeader> {
        self.program_headers()?
            .into_iter()
            .find(|header| header.kind == kind)
            .with_context(|| format!("no program header of type {kind:#x}"))
    }

    /// Replace the program headers in place by at most as many.
    pub fn set_program_headers(&mut self, headers: &[ProgramHeader]) -> anyhow::Result<()> {
        anyhow::ensure!(
            headers.len() <= self.program_headers()?.len(),
            "the program header table has no room for {} entries",
            headers.len()
        );
        let table = get(&self.bytes, header_field::PROGRAM_HEADER_OFFSET, 8)?;
        self.put_program_headers(table, headers)
    }

    /// Let `edit` change every program header in place.
    pub fn edit_program_headers(&mut self, edit: impl FnMut(&mut ProgramHeader)) -> anyhow::Result<()> {
        let mut headers = self.program_headers()?;
        headers.iter_mut().for_each(edit);
        self.set_program_headers(&headers)
    }

    /// Remove every program header of type `kind`.
    pub fn remove_program_headers(&mut self, kind: u32) -> anyhow::Result<()> {
        let mut headers = self.program_headers()?;
        headers.retain(|header| header.kind != kind);
        self.set_program_headers(&headers)
    }

    /// Move the program header table to the end of the file, outside every segment; a PT_PHDR would lie and is removed.
    pub fn move_program_headers_to_end(&mut self) -> anyhow::Result<u64> {
        let mut headers = self.program_headers()?;
        headers.retain(|header| header.kind != SegmentKind::PHDR);
        let table = self.pad_to(8);
        self.append(&vec![0; headers.len() * PROGRAM_HEADER_SIZE]);
        self.put_program_headers(table, &headers)?;
        Ok(table)
    }

    /// Move the program header table into a new read-only segment at the end of the file, as patchelf does: the kernel can then
    /// give its address to the program.
    pub fn move_program_headers_to_segment(&mut self) -> anyhow::Result<u64> {
        let mut headers = self.program_headers()?;
        let top = headers
            .iter()
            .filter(|header| header.kind == SegmentKind::LOAD)
            .map(|header| header.address + header.memory_size)
            .max();
        let address = top.context("no PT_LOAD")?.next_multiple_of(0x1000) + 0x1000;
        let table = self.pad_to(0x1000);
        let size = ((headers.len() + 1) * PROGRAM_HEADER_SIZE) as u64;
        let segment = ProgramHeader {
            kind: SegmentKind::LOAD,
            flags: 4,
            offset: table,
            address,
            file_size: size,
            memory_size: size,
            alignment: 0x1000,
        };
        for header in headers.iter_mut().filter(|header| header.kind == SegmentKind::PHDR) {
            *header = ProgramHeader { kind: SegmentKind::PHDR, alignment: 8, ..segment };
        }
        // PT_LOAD entries ascend in p_vaddr (gABI): the new one, which is the highest, stands behind the last of the others.
        let last = headers.iter().rposition(|header| header.kind == SegmentKind::LOAD).context("no PT_LOAD")?;
        headers.insert(last + 1, segment);
        self.append(&vec![0; headers.len() * PROGRAM_HEADER_SIZE]);
        self.put_program_headers(table, &headers)?;
        Ok(table)
    }

    /// Forget the section headers and, where they end the file, cut them off.
    pub fn strip_section_headers(&mut self) -> anyhow::Result<()> {
        let table = get(&self.bytes, header_field::SECTION_HEADER_OFFSET, 8)?;
        let end = self.program_headers()?.iter().map(|header| header.offset + header.file_size).max().unwrap_or(0);
        if table >= end {
            self.truncate(table)?;
        }
        put(&mut self.bytes, header_field::SECTION_HEADER_OFFSET, &0u64.to_le_bytes())?;
        put(&mut self.bytes, header_field::SECTION_HEADER_COUNT, &0u16.to_le_bytes())?;
        put(&mut self.bytes, header_field::SECTION_NAMES_INDEX, &0u16.to_le_bytes())
    }

    /// Cut the file to `length` bytes.
    pub fn truncate(&mut self, length: u64) -> anyhow::Result<()> {
        anyhow::ensure!(length <= self.length(), "cannot truncate {} bytes to {length}", self.length());
        self.bytes.truncate(usize::try_from(length)?);
        Ok(())
    }

    /// Cut the file where its last segment ends; returns the new length.
    pub fn truncate_to_segments(&mut self) -> anyhow::Result<u64> {
        self.strip_section_headers()?;
        let loads = self.program_headers()?.into_iter().filter(|header| header.kind == SegmentKind::LOAD);
        let end = loads.map(|header| header.offset + header.file_size).max().context("no PT_LOAD")?;
        self.truncate(end)?;
        Ok(end)
    }

    /// File offset of the byte that is loaded at `address`.
    pub fn offset_of(&self, address: u64) -> anyhow::Result<u64> {
        let headers = self.program_headers()?;
        let load = headers
            .iter()
            .filter(|header| header.kind == SegmentKind::LOAD)
            .find(|header| address.checked_sub(header.address).is_some_and(|distance| distance < header.file_size))
            .with_context(|| format!("address {address:#x} is in no segment of the file"))?;
        Ok(address - load.address + load.offset)
    }

    /// The dynamic entries up to DT_NULL: tag, value, file offset of the entry.
    pub fn dynamic(&self) -> anyhow::Result<Vec<(u64, u64, u64)>> {
        let segment = self.program_header(SegmentKind::DYNAMIC)?;
        let mut entries = Vec::new();
        for index in 0..segment.file_size / DYNAMIC_ENTRY_SIZE as u64 {
            let offset = segment.offset + index * DYNAMIC_ENTRY_SIZE as u64;
            let tag = get(&self.bytes, offset, 8)?;
            if tag == 0 {
                break;
            }
            entries.push((tag, get(&self.bytes, offset + 8, 8)?, offset));
        }
        Ok(entries)
    }

    /// The value of the first dynamic entry `tag`.
    pub fn dynamic_value(&self, tag: u64) -> anyhow::Result<u64> {
        self.dynamic()?
            .into_iter()
            .find(|entry| entry.0 == tag)
            .map(|entry| entry.1)
            .with_context(|| format!("no dynamic entry {tag:#x}"))
    }

    /// The records of DT_RELA.
    pub fn relocations(&self) -> anyhow::Result<Vec<Relocation>> {
        let table = self.offset_of(self.dynamic_value(DynamicTag::RELA)?)?;
        let size = self.dynamic_value(DynamicTag::RELASZ)?;
        (0..size / Relocation::SIZE)
            .map(|index| Relocation::read(&self.bytes, table + index * Relocation::SIZE))
            .collect()
    }

    /// Turn the first dynamic entry `tag` into `(new_tag, value)`.
    pub fn set_dynamic(&mut self, tag: u64, new_tag: u64, value: u64) -> anyhow::Result<()> {
        let entry = self.dynamic()?.into_iter().find(|entry| entry.0 == tag);
        let (_, _, offset) = entry.with_context(|| format!("no dynamic entry {tag:#x}"))?;
        put(&mut self.bytes, offset, &new_tag.to_le_bytes())?;
        put(&mut self.bytes, offset + 8, &value.to_le_bytes())
    }

    /// Add a dynamic entry in the place of DT_NULL; linkers leave room for more DT_NULLs behind it.
    pub fn add_dynamic(&mut self, tag: u64, value: u64) -> anyhow::Result<()> {
        let segment = self.program_header(SegmentKind::DYNAMIC)?;
        let offset = segment.offset + (self.dynamic()?.len() * DYNAMIC_ENTRY_SIZE) as u64;
        anyhow::ensure!(
            offset + 2 * DYNAMIC_ENTRY_SIZE as u64 <= segment.offset + segment.file_size,
            "no room for a dynamic entry"
        );
        put(&mut self.bytes, offset, &tag.to_le_bytes())?;
        put(&mut self.bytes, offset + 8, &value.to_le_bytes())
    }

    fn put_program_headers(&mut self, table: u64, headers: &[ProgramHeader]) -> anyhow::Result<()> {
        for (index, header) in headers.iter().enumerate() {
            put(&mut self.bytes, table + (index * PROGRAM_HEADER_SIZE) as u64, &header.bytes())?;
        }
        put(&mut self.bytes, header_field::PROGRAM_HEADER_OFFSET, &table.to_le_bytes())?;
        put(&mut self.bytes, header_field::PROGRAM_HEADER_COUNT, &u16::try_from(headers.len())?.to_le_bytes())
    }

    fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Pad the file with zeroes to a multiple of `alignment`; returns the new length.
    fn pad_to(&mut self, alignment: usize) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
        self.length()
    }
}

/// Write `bytes` to `path`, mode 0755, as a new file: one that is running or mapped keeps its old contents.
pub fn write_executable(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    if path.exists() {
        std::fs::remove_file(path)?;
    }
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}
