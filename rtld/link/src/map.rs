//! Puts the segments of one file into memory, or takes over what the kernel has mapped.
//!
//! A [`Mapping`] is complete: segments in place, tails zeroed, holes without access, header table at hand.
//! Nothing of the file's code has run. Protections are the file's own; relocation changes them later.

use crate::error::Reason;
use crate::fallible::{OutOfMemory, try_extend, try_filled};
use crate::huge::{HUGE, HugeSegment};
use alloc::vec::Vec;
use core::mem;
use goblin::elf64::program_header::{PF_R, PF_W, PF_X, ProgramHeader};
use rtld_elf::header::{self, FileHeader, FileKind};
use rtld_elf::pod::{Image, Table};
use rtld_elf::segments::{self, Layout};
use rtld_sys::Errno;
use rtld_sys::file::{File, Status};
use rtld_sys::memory::{self, Fill, Placing};

/// How much of a file is read to see what it is: the ELF header and, nearly always, the program headers.
pub const PREFIX: usize = 1024;

/// An object in memory.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// What is added to the file's addresses.
    pub bias: usize,
    /// First byte of the first page.
    pub start: usize,
    /// First byte after the last page.
    pub end: usize,
    /// Program headers, in memory for as long as the object is.
    pub headers: Table<'static, ProgramHeader>,
    /// What the headers say.
    pub layout: Layout,
    /// e_entry, not yet biased.
    pub entry: u64,
    /// ET_EXEC or ET_DYN.
    pub kind: FileKind,
}

impl Mapping {
    /// The object's memory as a checked view.
    pub fn image(&self) -> Image<'static> {
        let bias = core::ptr::without_provenance::<u8>(0).wrapping_add(self.bias);
        // SAFETY: the segments named by the headers are mapped and stay so as long as the object is used.
        unsafe { Image::loaded(bias, self.headers) }
    }

    /// Whether `address` lies between the first and the last page.
    pub fn spans(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// The first bytes of a file and what its ELF header says.
pub struct Prefix {
    bytes: [u8; PREFIX],
    length: usize,
    /// The checked header.
    pub header: FileHeader,
}

impl Prefix {
    /// Reads and checks the beginning of a file.
    pub fn read(file: &File, file_size: u64) -> Result<Prefix, Reason> {
        let mut bytes = [0; PREFIX];
        let length = file.read_at(&mut bytes, 0).map_err(Reason::Read)?;
        let header = header::check(bytes.get(..length).unwrap_or_default(), Some(file_size))?;
        Ok(Prefix { bytes, length, header })
    }

    /// Whether the file begins with these bytes.
    pub fn starts_with(&self, bytes: &[u8]) -> bool {
        !bytes.is_empty() && self.bytes.get(..self.length).unwrap_or_default().starts_with(bytes)
    }
}

/// A range of address space that is given back unless it is kept.
struct Reservation {
    start: usize,
    length: usize,
}

impl Reservation {
    fn keep(self) {
        mem::forget(self);
    }

    /// Everything up to this address is ours as well: segments are mapped upwards, without holes where this matters (`free_span`).
    fn reach(&mut self, end: usize) {
        self.length = self.length.max(end.saturating_sub(self.start));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.length != 0 {
            // SAFETY: the range is ours and the object in it was never handed out.
            let _ = unsafe { memory::unmap(self.start, self.length) };
        }
    }
}

/// Maps a file. `status` is the file's, taken after it was opened. At the start an object without holes ends at `below` if
/// nothing is in its way.
pub fn map_file(
    file: &File,
    status: &Status,
    prefix: &Prefix,
    pages: Pages,
    below: Option<usize>,
) -> Result<Mapping, Reason> {
    let header = prefix.header;
    let copied = read_headers(file, prefix)?;
    let table = Table::from_bytes(copied.as_slice());
    let layout = Layout::new(table, header.program_header_offset, pages.size() as u64, Some(status.size))?;
    let huge = HugeSegment::find(table, header.kind, &layout, pages);
    let free = if header.kind == FileKind::SharedObject && huge.is_none() && pages.start {
        below.and_then(|below| free_span(below, &layout, table, pages))
    } else {
        None
    };
    let put = |mut span: Span| place(file, &mut span, &layout, table, pages, huge).map(|()| span);
    let span = match free.map(put) {
        Some(Ok(span)) => span,
        // Something was in the way, or an error that the other way has too, and tells.
        _ => put(reserve(file, header.kind, &layout, table, pages, huge)?)?,
    };
    let bias = span.bias(&layout);
    let count = usize::from(header.program_header_count);
    let headers = match layout.program_headers_vaddr {
        Some(vaddr) => {
            let first = core::ptr::without_provenance::<u8>(bias.wrapping_add(vaddr as usize));
            // SAFETY: a segment that was just mapped covers the whole table.
            unsafe { Table::from_raw(first, count) }
        }
        None => copied.into_static()?,
    };
    let end = span.range.start.wrapping_add(span.range.length);
    let mapping =
        Mapping { bias, start: span.range.start, end, headers, layout, entry: header.entry, kind: header.kind };
    span.range.keep();
    Ok(mapping)
}

/// Takes over an object that the kernel has mapped: `headers` are its program headers in memory.
///
/// # Safety
/// The headers must be those of an object that is mapped as they say and stays mapped.
pub unsafe fn adopt(
    headers: Table<'static, ProgramHeader>,
    entry: usize,
    place: Place,
    pages: Pages,
) -> Result<Mapping, Reason> {
    let layout = Layout::new(headers, u64::MAX, pages.size() as u64, None)?;
    let bias = match place {
        Place::Bias(bias) => bias,
        Place::FirstPage(address) => address.wrapping_sub(layout.lowest as usize),
    };
    let start = bias.wrapping_add(layout.lowest as usize);
    let end = bias.wrapping_add(layout.highest as usize);
    let kind = if bias == 0 { FileKind::Executable } else { FileKind::SharedObject };
    Ok(Mapping { bias, start, end, headers, layout, entry: entry.wrapping_sub(bias) as u64, kind })
}

/// How the place of an object that is already mapped is known.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// The difference between addresses in memory and in the file.
    Bias(usize),
    /// The address of the first page.
    FirstPage(usize),
}

/// The system's page size, rounding by it, what gets huge pages, and whether the process is being started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    size: usize,
    huge_from: usize,
    start: bool,
}

impl Pages {
    /// From AT_PAGESZ; 4096 when it is not a power of two.
    pub fn new(size: usize) -> Pages {
        Pages { size: if size.is_power_of_two() { size } else { 4096 }, huge_from: 0, start: false }
    }

    /// The same, and a writable segment of at least so many bytes gets huge pages; 0 for none.
    pub fn with_huge(self, huge_from: usize) -> Pages {
        Pages { huge_from, ..self }
    }

    /// The same, while the process is being started. Later it may have a seccomp filter that lists the flags of mmap and the
    /// advice of madvise (Chromium's does), so that what is only faster is not done then: pages made ahead, places of one's own.
    pub fn at_start(self) -> Pages {
        Pages { start: true, ..self }
    }

    /// Whether the process is being started.
    pub fn are_of_start(self) -> bool {
        self.start
    }

    /// From what size on a writable segment gets huge pages.
    pub fn huge_from(self) -> Option<usize> {
        (self.huge_from != 0).then_some(self.huge_from)
    }

    /// The size in bytes.
    pub fn size(self) -> usize {
        self.size
    }

    /// Rounds an address down.
    pub fn down(self, address: usize) -> usize {
        address & !(self.size - 1)
    }

    /// Rounds an address up; an address in the last page of the address space becomes 0.
    pub fn up(self, address: usize) -> usize {
        self.down(address.wrapping_add(self.size - 1))
    }
}

type Headers<'a> = Table<'a, ProgramHeader>;

/// The address space of one object.
struct Span {
    range: Reservation,
    /// The first segment's pages of the file are in place already.
    holds_first: bool,
    /// Whether it is ours already, or becomes so segment by segment.
    placing: Placing,
}

impl Span {
    fn bias(&self, layout: &Layout) -> usize {
        self.range.start.wrapping_sub(layout.lowest as usize)
    }
}

/// Program headers as read from the file: inside the prefix, or in memory of their own.
enum HeaderBytes<'a> {
    Prefix(&'a [u8]),
    Heap(Vec<u8>),
}

impl HeaderBytes<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            HeaderBytes::Prefix(bytes) => bytes,
            HeaderBytes::Heap(bytes) => bytes,
        }
    }

    /// Memory for a table that no segment covers; it lives as long as the process.
    fn into_static(self) -> Result<Table<'static, ProgramHeader>, OutOfMemory> {
        let bytes = match self {
            HeaderBytes::Heap(bytes) => bytes,
            HeaderBytes::Prefix(bytes) => {
                let mut copy = Vec::new();
                try_extend(&mut copy, bytes)?;
                copy
            }
        };
        let bytes: &'static [u8] = bytes.leak();
        Ok(Table::from_bytes(bytes))
    }
}

fn read_headers<'a>(file: &File, prefix: &'a Prefix) -> Result<HeaderBytes<'a>, Reason> {
    let offset = prefix.header.program_header_offset;
    let length = usize::from(prefix.header.program_header_count).saturating_mul(mem::size_of::<ProgramHeader>());
    let known = prefix.bytes.get(..prefix.length).unwrap_or_default();
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    if let Some(bytes) = known.get(start..start.saturating_add(length)) {
        return Ok(HeaderBytes::Prefix(bytes));
    }
    let mut bytes = try_filled(0_u8, length)?;
    if i64::try_from(offset).is_err() || file.read_at(&mut bytes, offset).map_err(Reason::Read)? < length {
        return Err(Reason::Header(header::HeaderError::TooShort));
    }
    Ok(HeaderBytes::Heap(bytes))
}

/// Larger objects are left to the kernel, which may find them a place where huge pages of the file fit.
const LARGE: u64 = 2 << 20;

/// The space right below an address for an object without holes; None if there cannot be enough. Nothing is known of what is there:
/// each segment is mapped only if nothing is, which takes half the time of mapping it over a part of the whole
/// (docs/performance.md).
fn free_span(below: usize, layout: &Layout, headers: Headers<'_>, pages: Pages) -> Option<Span> {
    if layout.span() >= LARGE || layout.alignment as usize > pages.size() {
        return None;
    }
    let mut end = layout.lowest as usize;
    for load in segments::loads(headers) {
        if pages.down(load.p_vaddr as usize) != end {
            return None;
        }
        end = pages.up(load.p_vaddr.wrapping_add(load.p_memsz) as usize);
    }
    let start = pages.down(below).checked_sub(layout.span() as usize).filter(|&start| start != 0)?;
    Some(Span { range: Reservation { start, length: 0 }, holds_first: false, placing: Placing::Free })
}

/// Finds room for a whole object: for the first one, and for those that `free_span` has no place for. Usually this maps the file
/// from its first segment on over the whole span, so that the kernel chooses the place and the first segment costs no second
/// call (debuggers and recorders know this shape). Objects that want a place or an alignment of their own get empty address
/// space.
fn reserve(
    file: &File,
    kind: FileKind,
    layout: &Layout,
    headers: Headers<'_>,
    pages: Pages,
    huge: Option<HugeSegment>,
) -> Result<Span, Reason> {
    let length = layout.span() as usize;
    let alignment = layout.alignment as usize;
    if kind == FileKind::Executable {
        let start = memory::reserve(length, Some(layout.lowest as usize)).map_err(Reason::Map)?;
        return Ok(Span { range: Reservation { start, length }, holds_first: false, placing: Placing::Over });
    }
    if let Some(huge) = huge {
        // So that the segment begins at a huge page.
        let (lowest, before) = (layout.lowest as usize, huge.start.wrapping_sub(layout.lowest as usize));
        let length = before.checked_add(huge.length).ok_or(Reason::Map(Errno::NOMEM))?;
        let start = reserve_aligned(length, HUGE, lowest.wrapping_sub(huge.start), pages).map_err(Reason::Map)?;
        return Ok(Span { range: Reservation { start, length }, holds_first: false, placing: Placing::Over });
    }
    if alignment > pages.size() {
        let start = reserve_aligned(length, alignment, layout.lowest as usize, pages).map_err(Reason::Map)?;
        return Ok(Span { range: Reservation { start, length }, holds_first: false, placing: Placing::Over });
    }
    let first = segments::loads(headers).next();
    match first.filter(|first| first.p_filesz != 0 && first.p_flags & PF_W == 0) {
        Some(first) => {
            let offset = pages.down(first.p_offset as usize) as u64;
            let start = memory::map_file(0, length, protection(first.p_flags), file.descriptor(), offset);
            Ok(Span {
                range: Reservation { start: start.map_err(Reason::Map)?, length },
                holds_first: true,
                placing: Placing::Over,
            })
        }
        None => {
            let start = memory::reserve(length, None).map_err(Reason::Map)?;
            Ok(Span { range: Reservation { start, length }, holds_first: false, placing: Placing::Over })
        }
    }
}

/// Address space of `length` bytes whose start is congruent to `lowest` modulo `alignment`.
fn reserve_aligned(length: usize, alignment: usize, lowest: usize, pages: Pages) -> Result<usize, Errno> {
    let slack = alignment - pages.size();
    let whole = length.checked_add(slack).ok_or(Errno::NOMEM)?;
    let reserved = memory::reserve(whole, None)?;
    let head = lowest.wrapping_sub(reserved) & (alignment - 1);
    let start = reserved.wrapping_add(head);
    let tail = slack - head;
    if head != 0 {
        // SAFETY: the part before the object was reserved above and is used by nobody.
        unsafe { memory::unmap(reserved, head) }?;
    }
    if tail != 0 {
        // SAFETY: likewise the part after it.
        unsafe { memory::unmap(start.wrapping_add(length), tail) }?;
    }
    Ok(start)
}

/// A writable segment of at most so many pages is mapped with all of them made: a start writes to 98 of 100 of them, to some
/// after reading them.
const SMALL: usize = 64;

/// Of a larger one so many pages of what is constant after relocation are made, the last ones: the dynamic section and the global
/// offset table are there.
const PREPARED: usize = 8;

/// Whether the pages of a segment are made as it is mapped, which costs less than a fault for reading one and another for writing
/// to it (docs/performance.md).
pub fn fill(load: &ProgramHeader, pages: Pages) -> Fill {
    let is_small = load.p_filesz <= (SMALL * pages.size()) as u64 && load.p_flags & PF_W != 0;
    if is_small && pages.start { Fill::Now } else { Fill::Later }
}

/// Makes the pages of the file in small writable segments of what the kernel has mapped, as `map_file` does with its own.
pub fn prepare_small(mapping: &Mapping, pages: Pages) {
    for load in segments::loads(mapping.headers).filter(|load| fill(load, pages) == Fill::Now) {
        let start = mapping.bias.wrapping_add(load.p_vaddr as usize);
        let (first, end) = (pages.down(start), pages.up(start.wrapping_add(load.p_filesz as usize)));
        memory::prepare_to_write(first, end.saturating_sub(first));
    }
}

/// The same for a segment that is not small. `cleared` is the end of a page that is about to be written, if there is one.
fn prepare(layout: &Layout, bias: usize, cleared: Option<usize>, pages: Pages) {
    let Some(range) = layout.relro else { return };
    let first = pages.down(bias.wrapping_add(range.start as usize));
    let end = pages.up(bias.wrapping_add(range.end() as usize));
    let first = first.max(end.saturating_sub(PREPARED * pages.size()));
    // One page between the two has the variables of the C library's loader, which are written as well.
    let is_near = |&cleared: &usize| cleared >= end && cleared.wrapping_sub(end) <= 2 * pages.size();
    let end = cleared.filter(is_near).unwrap_or(end);
    memory::prepare_to_write(first, end.saturating_sub(first));
}

/// Puts every segment into its place inside the span.
fn place(
    file: &File,
    span: &mut Span,
    layout: &Layout,
    headers: Headers<'_>,
    pages: Pages,
    huge: Option<HugeSegment>,
) -> Result<(), Reason> {
    let bias = span.bias(layout);
    let mut mapped_end = span.range.start;
    for (index, load) in segments::loads(headers).enumerate() {
        let begin = bias.wrapping_add(load.p_vaddr as usize);
        let file_end = begin.wrapping_add(load.p_filesz as usize);
        let memory_end = begin.wrapping_add(load.p_memsz as usize);
        let first_page = pages.down(begin);
        if first_page > mapped_end && span.holds_first {
            // SAFETY: the hole is inside our span and holds nothing of the object.
            unsafe { memory::protect(mapped_end, first_page - mapped_end, memory::NONE) }.map_err(Reason::Protect)?;
        }
        if let Some(huge) = huge.filter(|huge| pages.down(load.p_vaddr as usize) == huge.start) {
            // SAFETY: the range is the end of our span and holds nothing yet; no other segment has a page of it.
            return unsafe { huge.place(file, &load, first_page) };
        }
        let mut filled = if first_page < mapped_end { mapped_end } else { first_page };
        if load.p_filesz != 0 {
            let length = pages.up(file_end) - first_page;
            let offset = pages.down(load.p_offset as usize) as u64;
            // Also where the mapping of the whole has the segment in its place: valgrind 3.19 reads no names of a library whose
            // constants have no mapping of their own, and ends with an assertion when such libraries come and go.
            if !(index == 0 && span.holds_first) {
                let fill = fill(&load, pages);
                let (protection, source) = (protection(load.p_flags), (file.descriptor(), offset));
                // SAFETY: what is replaced is inside our span, if anything is; a page shared with the segment before holds the
                // same bytes of the file.
                unsafe { memory::map_file_at(first_page, length, protection, source, fill, span.placing) }
                    .map_err(Reason::Map)?;
            }
            filled = first_page.wrapping_add(length);
            span.range.reach(filled);
            let has_relro = layout.relro.is_some_and(|range| range.start.wrapping_sub(load.p_vaddr) < load.p_memsz);
            if has_relro && pages.start && load.p_flags & PF_W != 0 && fill(&load, pages) == Fill::Later {
                let clears = load.p_memsz > load.p_filesz && file_end < filled;
                prepare(layout, bias, clears.then_some(filled), pages);
            }
        }
        if load.p_memsz > load.p_filesz {
            let zero_from = if load.p_filesz != 0 { file_end } else { begin };
            if zero_from < filled {
                let end = if memory_end < filled { filled.min(pages.up(memory_end)) } else { filled };
                zero(zero_from, end, load.p_flags, pages)?;
            }
            let end = pages.up(memory_end);
            if end > filled {
                // SAFETY: what is replaced is inside our span, if anything is, and holds nothing yet.
                unsafe { memory::map_anonymous_at(filled, end - filled, protection(load.p_flags), span.placing) }
                    .map_err(Reason::ZeroFill)?;
                filled = end;
                span.range.reach(filled);
            }
        }
        mapped_end = filled;
    }
    Ok(())
}

/// Clears the rest of a segment's last file page, opening the page for writing if it is not.
fn zero(start: usize, end: usize, flags: u32, pages: Pages) -> Result<(), Reason> {
    let page = pages.down(start);
    let length = pages.up(end) - page;
    let closed = flags & PF_W == 0;
    if closed {
        // SAFETY: the object is not in use yet.
        unsafe { memory::protect(page, length, memory::READ | memory::WRITE) }.map_err(Reason::ZeroFill)?;
    }
    let first = core::ptr::without_provenance_mut::<u8>(start);
    // SAFETY: the bytes lie in pages of our own mapping, writable now, and belong to no table that is read yet.
    unsafe { first.write_bytes(0, end - start) };
    if closed {
        // SAFETY: gives the page the protection that the file asks for.
        unsafe { memory::protect(page, length, protection(flags)) }.map_err(Reason::ZeroFill)?;
    }
    Ok(())
}

/// PROT_* bits for PF_* bits.
pub fn protection(flags: u32) -> u32 {
    let mut protection = memory::NONE;
    if flags & PF_R != 0 {
        protection |= memory::READ;
    }
    if flags & PF_W != 0 {
        protection |= memory::WRITE;
    }
    if flags & PF_X != 0 {
        protection |= memory::EXECUTE;
    }
    protection
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    fn map(below: Option<usize>) -> Mapping {
        let file = File::open(c"/lib/x86_64-linux-gnu/libz.so.1").unwrap();
        let status = file.status().unwrap();
        let prefix = Prefix::read(&file, status.size).unwrap();
        map_file(&file, &status, &prefix, Pages::new(PAGE).at_start(), below).unwrap()
    }

    /// How many mappings of libz there are from `start` to `end`.
    fn mappings(start: usize, end: usize) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let inside = |line: &&str| {
            let first = usize::from_str_radix(line.split_once('-').unwrap().0, 16).unwrap();
            line.contains("/libz.so") && (start..end).contains(&first)
        };
        maps.lines().filter(inside).count()
    }

    fn unmap(mapping: &Mapping) {
        // SAFETY: nobody uses the object.
        unsafe { memory::unmap(mapping.start, mapping.end - mapping.start) }.unwrap();
    }

    #[test]
    fn an_object_ends_where_it_may_unless_something_is_in_its_way() {
        let span = {
            let somewhere = map(None);
            unmap(&somewhere);
            somewhere.end - somewhere.start
        };
        // A place that other threads of this process will hardly come to: in the middle of a large one.
        let room = memory::reserve(1 << 30, None).unwrap();
        let below = room + (1 << 29);
        // SAFETY: reserved a moment ago.
        unsafe { memory::unmap(below - 4 * span, 4 * span) }.unwrap();
        let first = map(Some(below));
        assert_eq!((first.start, first.end), (below - span, below));
        assert!(first.image().bytes(0, 4).unwrap().iter().eq(*b"\x7fELF"));
        let next = map(Some(first.start));
        assert_eq!(next.end, first.start);

        // A page at each place of where the third one would be.
        for place in (next.start - span..next.start).step_by(PAGE) {
            let page = memory::reserve(PAGE, Some(place)).unwrap();
            let third = map(Some(next.start));
            assert!(third.end <= next.start - span || third.start >= next.start, "{place:x}");
            assert_eq!(mappings(next.start - span, next.start), 0, "nothing is left there");
            unmap(&third);
            // SAFETY: the page is ours.
            unsafe { memory::unmap(page, PAGE) }.unwrap();
        }
        assert_eq!(map(Some(next.start)).end, next.start);
        assert!(map(Some(PAGE)).start > PAGE, "no room below");
    }
}
