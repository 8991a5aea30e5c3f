//! What the tests share: files laid out as in memory, and lists of real files.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use rtld_elf::{Dynamic, DynamicError, HeaderError, Image, Layout, ProgramHeader, SegmentError, Table, header};

/// The page size of x86-64.
pub const PAGE: u64 = 4096;

/// Why a file was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    Header(HeaderError),
    Segment(SegmentError),
    Dynamic(DynamicError),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Header(error) => error.fmt(formatter),
            Refusal::Segment(error) => error.fmt(formatter),
            Refusal::Dynamic(error) => error.fmt(formatter),
        }
    }
}

/// The program headers of a file whose header was checked.
pub fn program_headers(file: &[u8], header: &header::FileHeader) -> Vec<u8> {
    let start = header.program_header_offset as usize;
    file[start..start + header.program_headers_size()].to_vec()
}

/// A file laid out in a buffer as it would lie in memory.
pub struct LaidOut {
    pub layout: Layout,
    headers: Vec<u8>,
    buffer: Vec<u8>,
}

impl LaidOut {
    /// Checks and lays out `file`. A span beyond `limit` bytes stands for memory that runs out: `None`.
    pub fn new(file: &[u8], limit: u64) -> Result<Option<LaidOut>, Refusal> {
        let size = Some(file.len() as u64);
        let header = header::check(file, size).map_err(Refusal::Header)?;
        let headers = program_headers(file, &header);
        let table: Table<'_, ProgramHeader> = Table::from_bytes(&headers);
        let layout = Layout::new(table, header.program_header_offset, PAGE, size).map_err(Refusal::Segment)?;
        if layout.span() > limit {
            return Ok(None);
        }
        let mut buffer = vec![0; layout.span() as usize];
        for load in rtld_elf::segments::loads(table).filter(|load| load.p_filesz != 0) {
            let (from, to, length) =
                (load.p_offset as usize, (load.p_vaddr - layout.lowest) as usize, load.p_filesz as usize);
            buffer[to..to + length].copy_from_slice(&file[from..from + length]);
        }
        Ok(Some(LaidOut { layout, headers, buffer }))
    }

    pub fn headers(&self) -> Table<'_, ProgramHeader> {
        Table::from_bytes(&self.headers)
    }

    pub fn image(&self) -> Image<'_> {
        Image::laid_out(&self.buffer, self.layout.lowest, self.headers())
    }

    /// The dynamic section; `None` without PT_DYNAMIC.
    pub fn dynamic(&self) -> Result<Option<Dynamic<'_>>, Refusal> {
        let Some(range) = self.layout.dynamic else {
            return Ok(None);
        };
        Dynamic::digest(&self.image(), range).map(Some).map_err(Refusal::Dynamic)
    }
}

/// All regular files below `directory` that start with the ELF magic, links not followed.
pub fn elf_files(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            elf_files(&entry.path(), files);
        } else if kind.is_file() && starts_with_magic(&entry.path()) {
            files.push(entry.path());
        }
    }
}

fn starts_with_magic(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF"
}

/// A record as it lies in a file.
pub trait Record {
    fn bytes(&self) -> Vec<u8>;
}

impl Record for ProgramHeader {
    fn bytes(&self) -> Vec<u8> {
        let long = [self.p_offset, self.p_vaddr, self.p_paddr, self.p_filesz, self.p_memsz, self.p_align];
        [bytes_of(&[self.p_type, self.p_flags]), bytes_of(&long)].concat()
    }
}

impl Record for u8 {
    fn bytes(&self) -> Vec<u8> {
        vec![*self]
    }
}

impl Record for u16 {
    fn bytes(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl Record for u32 {
    fn bytes(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl Record for u64 {
    fn bytes(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

/// Records as they lie in a file, one after another.
pub fn bytes_of<T: Record>(records: &[T]) -> Vec<u8> {
    records.iter().flat_map(Record::bytes).collect()
}

/// A directory that is removed again.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let directory = std::env::temp_dir().join(format!("rtld-elf-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Scratch(directory)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
