//! An object made by hand, straight into memory: executable bytes at 0..0x1000, writable ones at 0x1000..0x3000.

use rtld_elf::tag::*;
use rtld_elf::{Dynamic, DynamicError, Image, PF_R, PF_W, PF_X, ProgramHeader, Range, Table};

use goblin::elf64::program_header::PT_LOAD;

use crate::support::{Record, bytes_of};

/// Where things lie in a crafted object.
pub const STRINGS: u64 = 0x100;
pub const SYMBOLS: u64 = 0x400;
pub const HASH: u64 = 0x800;
pub const VERSIONS: u64 = 0xa00;
pub const TEXT: u64 = 0xf00;
pub const DYNAMIC: u64 = 0x1000;
pub const TABLES: u64 = 0x2000;
pub const END: u64 = 0x3000;

pub struct Crafted {
    headers: Vec<u8>,
    memory: Vec<u8>,
    entries: Vec<u64>,
}

impl Crafted {
    /// An object with a dynamic section that says nothing.
    pub fn new() -> Crafted {
        let load = |flags: u32, vaddr: u64, size: u64| ProgramHeader {
            p_type: PT_LOAD,
            p_flags: flags,
            p_vaddr: vaddr,
            p_memsz: size,
            ..ProgramHeader::default()
        };
        let headers = bytes_of(&[load(PF_R | PF_X, 0, 0x1000), load(PF_R | PF_W, 0x1000, 0x2000)]);
        Crafted { headers, memory: vec![0; END as usize], entries: Vec::new() }
    }

    /// With one more entry in its dynamic section.
    pub fn tag(mut self, tag: u64, value: u64) -> Self {
        self.entries.extend([tag, value]);
        self
    }

    /// With these bytes at a virtual address.
    pub fn put<T: Record>(mut self, vaddr: u64, records: &[T]) -> Self {
        let bytes = bytes_of(records);
        let start = vaddr as usize;
        self.memory[start..start + bytes.len()].copy_from_slice(&bytes);
        self
    }

    /// With a string table.
    pub fn strings(self, text: &str) -> Self {
        let size = text.len() as u64;
        self.put(STRINGS, text.as_bytes()).tag(DT_STRTAB, STRINGS).tag(DT_STRSZ, size)
    }

    /// With a symbol table: name and value of each; number 0 is added.
    pub fn symbols(self, symbols: &[(u32, u64)]) -> Self {
        let words: Vec<u32> = std::iter::once(&(0, 0))
            .chain(symbols)
            .flat_map(|&(name, value)| [name, 0x0001_0012, value as u32, (value >> 32) as u32, 0, 0])
            .collect();
        self.put(SYMBOLS, &words).tag(DT_SYMTAB, SYMBOLS)
    }

    pub fn image(&self) -> Image<'_> {
        Image::laid_out(&self.memory, 0, Table::from_bytes(&self.headers))
    }

    /// Writes the dynamic section into memory, with its end, and says where it is.
    pub fn finish(&mut self) -> Range {
        let mut entries = self.entries.clone();
        entries.extend([DT_NULL, 0]);
        let bytes = bytes_of(&entries);
        let start = DYNAMIC as usize;
        self.memory[start..start + bytes.len()].copy_from_slice(&bytes);
        Range { start: DYNAMIC, size: bytes.len() as u64 }
    }

    /// Digests it and hands the result over.
    pub fn digest<R>(mut self, use_it: impl FnOnce(Result<Dynamic<'_>, DynamicError>) -> R) -> R {
        let range = self.finish();
        use_it(Dynamic::digest(&self.image(), range))
    }

    /// Digests it: it must be refused, with this text.
    pub fn refused(self, text: &str) {
        self.digest(|result| assert_eq!(result.map(|_| ()).map_err(|error| error.to_string()), Err(text.to_owned())));
    }

    /// Digests it: it must be accepted.
    pub fn accepted<R>(self, use_it: impl FnOnce(Dynamic<'_>) -> R) -> R {
        self.digest(|result| use_it(result.expect("accepted")))
    }
}
