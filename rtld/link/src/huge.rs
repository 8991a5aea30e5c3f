//! Large writable segments in huge pages (LD_THP): which segment, where it must lie, and how it is filled. Relocation then takes
//! one fault for 512 pages, and no page of it is the file's: what is not written costs memory too, and other processes share
//! nothing of it. Off unless asked for.

use crate::error::Reason;
use crate::map::{self, Pages};
use goblin::elf64::program_header::{PF_W, ProgramHeader};
use rtld_elf::Table;
use rtld_elf::header::{FileKind, HeaderError};
use rtld_elf::segments::{self, Layout};
use rtld_sys::file::File;
use rtld_sys::memory::{self, Placing};

/// A huge page of x86-64.
pub const HUGE: usize = 2 << 20;

/// A last part of a huge page that is larger than this gets one of its own.
const PART: usize = HUGE / 2;

/// The segment of an object that is put into huge pages: its last one.
#[derive(Clone, Copy, Debug)]
pub struct HugeSegment {
    /// Virtual address of its first page.
    pub start: usize,
    /// Bytes from there, the rest of the last huge page included.
    pub length: usize,
}

impl HugeSegment {
    /// The last segment of an object that the kernel may put anywhere, if it is writable, large enough, and on no page of
    /// another.
    pub fn find(
        headers: Table<'_, ProgramHeader>,
        kind: FileKind,
        layout: &Layout,
        pages: Pages,
    ) -> Option<HugeSegment> {
        let least = pages.huge_from()?;
        let movable = kind == FileKind::SharedObject && layout.alignment as usize <= pages.size();
        let (mut before, mut last) = (None, None);
        for load in segments::loads(headers) {
            (before, last) = (last, Some(load));
        }
        let last = last.filter(|_| movable)?;
        if last.p_flags & PF_W == 0 || (last.p_filesz as usize) < least {
            return None;
        }
        let start = pages.down(last.p_vaddr as usize);
        if before.is_some_and(|load| pages.up(load.p_vaddr.wrapping_add(load.p_memsz) as usize) > start) {
            return None;
        }
        let length = pages.up(last.p_vaddr.wrapping_add(last.p_memsz) as usize).checked_sub(start)?;
        let whole = if length % HUGE > PART { length.checked_next_multiple_of(HUGE)? } else { length };
        Some(HugeSegment { start, length: whole })
    }

    /// Fills the segment, whose first page is to lie at `address`.
    ///
    /// # Safety
    /// The range must belong to the caller, with nothing in it that is still used.
    pub unsafe fn place(self, file: &File, load: &ProgramHeader, address: usize) -> Result<(), Reason> {
        // SAFETY: the caller's promise.
        unsafe { memory::map_anonymous_at(address, self.length, map::protection(load.p_flags), Placing::Over) }
            .map_err(Reason::Map)?;
        memory::want_huge_pages(address, self.length);
        let before = (load.p_vaddr as usize).wrapping_sub(self.start);
        let length = before.saturating_add(load.p_filesz as usize).min(self.length);
        let first = core::ptr::with_exposed_provenance_mut::<u8>(address);
        // SAFETY: fresh writable pages that nobody else knows of, for at least so many bytes.
        let bytes = unsafe { core::slice::from_raw_parts_mut(first, length) };
        let offset = load.p_offset.wrapping_sub(before as u64);
        match file.read_at(bytes, offset).map_err(Reason::Read)? {
            read if read < length => Err(Reason::Header(HeaderError::TooShort)),
            _ => Ok(()),
        }
    }
}
