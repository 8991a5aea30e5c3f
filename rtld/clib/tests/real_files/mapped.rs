//! Real files laid out in memory as a loader maps them: private, page-aligned, not relocated, writable throughout.

use std::alloc::{Layout as Memory, alloc_zeroed};
use std::path::Path;

use rtld_clib::Library;
use rtld_elf::{Dynamic, Image, Layout, ProgramHeader, Sym, Table, header, segments};

pub const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";
pub const LOADER: &str = "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";

const PAGE: usize = 4096;

/// One object in memory that is never freed, so that views of it may live as long as the test.
#[derive(Clone, Copy)]
pub struct Mapped {
    pub base: usize,
    pub image: Image<'static>,
    pub layout: Layout,
}

impl Mapped {
    pub fn new(path: impl AsRef<Path>) -> Mapped {
        let path = path.as_ref();
        let file = std::fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        let file: &'static [u8] = file.leak();
        let size = Some(file.len() as u64);
        let prefix = header::check(&file[..64], size).unwrap();
        let start = prefix.program_header_offset as usize;
        let headers = &file[start..start + prefix.program_headers_size()];
        let headers = Table::<ProgramHeader>::from_bytes(headers);
        let layout = Layout::new(headers, prefix.program_header_offset, PAGE as u64, size).unwrap();
        let memory = Memory::from_size_align(layout.span() as usize, PAGE).unwrap();
        // SAFETY: the size is not 0, as there is at least one segment.
        let memory = unsafe { alloc_zeroed(memory) };
        let bias = memory.wrapping_sub(layout.lowest as usize);
        for load in segments::loads(headers) {
            let bytes = &file[load.p_offset as usize..][..load.p_filesz as usize];
            let place = bias.wrapping_add(load.p_vaddr as usize);
            // SAFETY: the segment lies inside the span that was allocated.
            unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        // SAFETY: all segments lie in the memory that was allocated for them and is never freed.
        let image = unsafe { Image::loaded(bias, headers) };
        Mapped { base: bias.expose_provenance(), image, layout }
    }

    /// The object as it is in memory now.
    pub fn library(&self) -> Library<'static> {
        let dynamic = Dynamic::digest(&self.image, self.layout.dynamic.unwrap()).unwrap();
        Library { base: self.base, image: self.image, dynamic: Box::leak(Box::new(dynamic)) }
    }

    /// Overwrites bytes at a virtual address.
    pub fn write(&self, vaddr: u64, bytes: &[u8]) {
        self.image.bytes(vaddr, bytes.len() as u64).expect("inside a segment");
        let place = std::ptr::with_exposed_provenance_mut::<u8>(self.base.wrapping_add(vaddr as usize));
        // SAFETY: inside a segment of memory that is ours and can be written.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// The words of a variable, by its name.
    pub fn words(&self, name: &str) -> Vec<u64> {
        let symbol = self.symbol(name);
        self.image.table::<u64>(symbol.st_value, symbol.st_size / 8).unwrap().iter().collect()
    }

    /// The definition of a name.
    pub fn symbol(&self, name: &str) -> Sym {
        self.library().symbol(name.as_bytes()).unwrap_or_else(|| panic!("no symbol {name}"))
    }

    /// Changes the size that the symbol table gives for a name.
    pub fn set_size(&self, name: &str, size: u64) {
        let library = self.library();
        let symbols = library.dynamic.symbols.records();
        let is_name = |symbol: Sym| library.dynamic.strings.equals(symbol.st_name, name.as_bytes());
        let count = library.dynamic.hash.symbol_count() as usize;
        let index = symbols.iter().take(count).position(is_name).unwrap_or_else(|| panic!("no symbol {name}"));
        let entry = symbols.as_ptr().addr() + index * size_of::<Sym>();
        // st_size is the last of the record's fields.
        self.write((entry + size_of::<Sym>() - 8 - self.base) as u64, &size.to_le_bytes());
    }
}
