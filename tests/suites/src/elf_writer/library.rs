//! A shared library from nothing: every segment, table and entry stands where the test puts it.
//!
//! Owns: the placement of headers, tables and contents in the file. May not move or repair what the test chose.

use std::path::Path;

use anyhow::Context as _;

use super::format::{
    DynamicTag, FILE_HEADER_SIZE, PROGRAM_HEADER_SIZE, ProgramHeader, Protection, Relocation, SegmentKind, put,
};
use super::image::write_executable;
use super::tables::{Names, Symbol, gnu_hash, symbol_table, sysv_hash};

/// One PT_LOAD; [`Library::place`] fills it.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// `p_vaddr`.
    pub address: u64,
    /// `p_offset`.
    pub offset: u64,
    /// `p_filesz`.
    pub file_size: u64,
    /// `p_memsz`.
    pub memory_size: u64,
    /// `p_flags`.
    pub flags: u32,
    /// `p_align`.
    pub alignment: u64,
}

impl Segment {
    /// A segment of `size` bytes in file and memory, page-aligned, at the same offset as its address.
    #[must_use]
    pub fn new(address: u64, size: u64, flags: u32) -> Self {
        Self { address, offset: address, file_size: size, memory_size: size, flags, alignment: 0x1000 }
    }

    /// The same at another file offset.
    #[must_use]
    pub fn offset(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// The same with another size in memory.
    #[must_use]
    pub fn memory(self, memory_size: u64) -> Self {
        Self { memory_size, ..self }
    }
}

/// Which hash tables the library has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashes {
    /// DT_HASH only.
    Sysv,
    /// DT_GNU_HASH only.
    Gnu,
    /// Both.
    Both,
}

/// The plan of a library. Addresses are link-time addresses.
pub struct Library {
    /// DT_SONAME.
    pub soname: String,
    /// PT_LOAD entries in table order.
    pub segments: Vec<Segment>,
    /// Dynamic symbols; the first one has index 1.
    pub symbols: Vec<Symbol>,
    /// DT_RELA, in this order.
    pub relocations: Vec<Relocation>,
    /// DT_JMPREL, in this order.
    pub plt_relocations: Vec<Relocation>,
    /// DT_RELR words.
    pub packed: Vec<u64>,
    /// Further dynamic entries.
    pub dynamic: Vec<(u64, u64)>,
    /// Further program headers, behind PT_LOAD and PT_DYNAMIC.
    pub headers: Vec<ProgramHeader>,
    /// `p_flags` of PT_GNU_STACK, or no such header.
    pub stack: Option<u32>,
    /// Hash tables.
    pub hashes: Hashes,
    /// File offset of the program headers.
    pub headers_offset: u64,
    /// Where symbols, names, hashes and relocations stand.
    pub tables_at: u64,
    /// Where the dynamic section stands.
    pub dynamic_at: u64,
    /// Bytes put at addresses.
    contents: Vec<(u64, Vec<u8>)>,
    /// Bytes put at file offsets, whether a segment covers them or not.
    raw: Vec<(u64, Vec<u8>)>,
}

impl Library {
    /// The shape linkers make: headers and tables (R) at 0, text (RX) at 0x1000, data (RW) at 0x2000 with a page of bss behind it;
    /// symbol `anchor` at 0x2800, which the probe program wants.
    #[must_use]
    pub fn ordinary(soname: &str) -> Self {
        Self {
            segments: vec![
                Segment::new(0, 0x1000, Protection::R),
                Segment::new(0x1000, 0x1000, Protection::RX),
                Segment::new(0x2000, 0x1000, Protection::RW).memory(0x2000),
            ],
            symbols: vec![Symbol::object("anchor", 0x2800, 8)],
            dynamic_at: 0x2000,
            ..Self::bare(soname)
        }
    }

    /// No segments, no symbols; headers behind the file header, tables at 0x400.
    #[must_use]
    pub fn bare(soname: &str) -> Self {
        Self {
            soname: soname.into(),
            segments: Vec::new(),
            symbols: Vec::new(),
            relocations: Vec::new(),
            plt_relocations: Vec::new(),
            packed: Vec::new(),
            dynamic: Vec::new(),
            headers: Vec::new(),
            stack: Some(Protection::RW),
            hashes: Hashes::Sysv,
            headers_offset: FILE_HEADER_SIZE,
            tables_at: 0x400,
            dynamic_at: 0,
            contents: Vec::new(),
            raw: Vec::new(),
        }
    }

    /// The PT_LOAD entry `index`, to be changed.
    pub fn segment(&mut self, index: usize) -> anyhow::Result<&mut Segment> {
        self.segments.get_mut(index).with_context(|| format!("no segment {index}"))
    }

    /// Put `bytes` at `address`.
    pub fn place(&mut self, address: u64, bytes: &[u8]) -> &mut Self {
        self.contents.push((address, bytes.to_vec()));
        self
    }

    /// Put the 8-byte `value` at `address`.
    pub fn word(&mut self, address: u64, value: u64) -> &mut Self {
        self.place(address, &value.to_le_bytes())
    }

    /// Put `bytes` at file offset `offset`; the file grows if it must.
    pub fn place_in_file(&mut self, offset: u64, bytes: &[u8]) -> &mut Self {
        self.raw.push((offset, bytes.to_vec()));
        self
    }

    /// Add `symbol`; returns its index.
    pub fn symbol(&mut self, symbol: Symbol) -> u32 {
        self.symbols.push(symbol);
        self.symbols.len() as u32
    }

    /// Add a DT_RELA record.
    pub fn relocation(&mut self, address: u64, kind: u32, symbol: u32, addend: i64) -> &mut Self {
        self.relocations.push(Relocation::new(address, kind, symbol, addend));
        self
    }

    /// Write the library to `path`.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        write_executable(path, &self.bytes()?)
    }

    /// The file.
    pub fn bytes(&self) -> anyhow::Result<Vec<u8>> {
        let (tables, entries) = self.tables();
        let dynamic: Vec<u8> =
            entries.iter().flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()].concat()).collect();
        let headers = self.program_headers(dynamic.len() as u64)?;

        let segments_end = self.segments.iter().map(|segment| segment.offset + segment.file_size).max().unwrap_or(0);
        let headers_end = self.headers_offset + (headers.len() * PROGRAM_HEADER_SIZE) as u64;
        let raw_end = self.raw.iter().map(|(offset, bytes)| offset + bytes.len() as u64).max().unwrap_or(0);
        let mut file = vec![0; usize::try_from(segments_end.max(headers_end).max(raw_end))?];

        for (offset, bytes) in &self.raw {
            put(&mut file, *offset, bytes)?;
        }
        put(&mut file, 0, &self.file_header(headers.len())?)?;
        put(&mut file, self.headers_offset, &headers.iter().flat_map(ProgramHeader::bytes).collect::<Vec<_>>())?;
        put(&mut file, self.offset_of(self.tables_at, tables.len())?, &tables)?;
        put(&mut file, self.offset_of(self.dynamic_at, dynamic.len())?, &dynamic)?;
        for (address, bytes) in &self.contents {
            put(&mut file, self.offset_of(*address, bytes.len())?, bytes)?;
        }
        Ok(file)
    }

    /// File offset of `size` bytes at `address`.
    fn offset_of(&self, address: u64, size: usize) -> anyhow::Result<u64> {
        let segment = self
            .segments
            .iter()
            .find(|segment| segment.address <= address && address + size as u64 <= segment.address + segment.file_size);
        let segment = segment.with_context(|| format!("no segment holds {size} bytes at {address:#x}"))?;
        Ok(address - segment.address + segment.offset)
    }

    /// The bytes at `tables_at` and the dynamic entries, DT_NULL included.
    fn tables(&self) -> (Vec<u8>, Vec<(u64, u64)>) {
        let mut names = Names::new();
        let soname = names.add(&self.soname);
        let symbols = symbol_table(&self.symbols, &mut names);
        let mut bytes = Vec::new();
        let mut add = |table: Vec<u8>| {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            let address = self.tables_at + bytes.len() as u64;
            bytes.extend(table);
            address
        };
        let mut entries = vec![
            (DynamicTag::SONAME, u64::from(soname)),
            (DynamicTag::SYMTAB, add(symbols)),
            (DynamicTag::SYMENT, 24),
            (DynamicTag::STRSZ, names.bytes.len() as u64),
            (DynamicTag::STRTAB, add(names.bytes)),
        ];
        if self.hashes != Hashes::Gnu {
            entries.push((DynamicTag::HASH, add(sysv_hash(&self.symbols))));
        }
        if self.hashes != Hashes::Sysv {
            entries.push((DynamicTag::GNU_HASH, add(gnu_hash(&self.symbols))));
        }
        if !self.relocations.is_empty() {
            let table: Vec<u8> = self.relocations.iter().flat_map(Relocation::bytes).collect();
            entries.extend([
                (DynamicTag::RELASZ, table.len() as u64),
                (DynamicTag::RELAENT, 24),
                (DynamicTag::RELA, add(table)),
            ]);
        }
        if !self.plt_relocations.is_empty() {
            let table: Vec<u8> = self.plt_relocations.iter().flat_map(Relocation::bytes).collect();
            entries.extend([
                (DynamicTag::PLTRELSZ, table.len() as u64),
                (DynamicTag::PLTREL, DynamicTag::RELA),
                (DynamicTag::JMPREL, add(table)),
            ]);
        }
        if !self.packed.is_empty() {
            let table: Vec<u8> = self.packed.iter().flat_map(|word| word.to_le_bytes()).collect();
            entries.extend([
                (DynamicTag::RELRSZ, table.len() as u64),
                (DynamicTag::RELRENT, 8),
                (DynamicTag::RELR, add(table)),
            ]);
        }
        entries.extend(&self.dynamic);
        entries.push((DynamicTag::NULL, 0));
        (bytes, entries)
    }

    fn program_headers(&self, dynamic_size: u64) -> anyhow::Result<Vec<ProgramHeader>> {
        let mut headers: Vec<ProgramHeader> = self
            .segments
            .iter()
            .map(|segment| ProgramHeader {
                kind: SegmentKind::LOAD,
                flags: segment.flags,
                offset: segment.offset,
                address: segment.address,
                file_size: segment.file_size,
                memory_size: segment.memory_size,
                alignment: segment.alignment,
            })
            .collect();
        let offset = self.offset_of(self.dynamic_at, usize::try_from(dynamic_size)?)?;
        headers.push(ProgramHeader {
            kind: SegmentKind::DYNAMIC,
            flags: Protection::RW,
            offset,
            address: self.dynamic_at,
            file_size: dynamic_size,
            memory_size: dynamic_size,
            alignment: 8,
        });
        if let Some(flags) = self.stack {
            headers.push(ProgramHeader {
                kind: SegmentKind::GNU_STACK,
                flags,
                offset: 0,
                address: 0,
                file_size: 0,
                memory_size: 0,
                alignment: 16,
            });
        }
        headers.extend(&self.headers);
        Ok(headers)
    }

    fn file_header(&self, header_count: usize) -> anyhow::Result<Vec<u8>> {
        // ELFCLASS64, ELFDATA2LSB, EV_CURRENT, ELFOSABI_NONE; ET_DYN for EM_X86_64.
        let mut bytes = b"\x7fELF\x02\x01\x01\x00\0\0\0\0\0\0\0\0\x03\x00\x3e\x00\x01\x00\x00\x00".to_vec();
        bytes.extend(0u64.to_le_bytes());
        bytes.extend(self.headers_offset.to_le_bytes());
        bytes.extend(0u64.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        for half in [FILE_HEADER_SIZE as u16, PROGRAM_HEADER_SIZE as u16, u16::try_from(header_count)?, 64, 0, 0] {
            bytes.extend(half.to_le_bytes());
        }
        Ok(bytes)
    }
}
