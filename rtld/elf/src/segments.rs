//! The program headers: how an object lies in memory, and whether it can be put there.
//!
//! It owns the checks of PT_LOAD and of the segments that must lie inside one. It maps nothing. PT_NOTE and unknown
//! segments are not looked at: what nobody reads must not stop a load.

use core::fmt;

use goblin::elf64::program_header::{
    PT_DYNAMIC, PT_GNU_EH_FRAME, PT_GNU_RELRO, PT_GNU_STACK, PT_INTERP, PT_LOAD, PT_TLS, SIZEOF_PHDR,
};

use crate::{ProgramHeader, Table};

/// Largest p_align that is honoured: the largest page of x86-64.
pub const MAXIMUM_ALIGNMENT: u64 = 1 << 30;
/// Largest span of an object in bytes: half of the user address space of x86-64 with 4-level page tables.
pub const MAXIMUM_SPAN: u64 = 1 << 46;

/// Bytes of an object, by virtual address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Virtual address of the first byte.
    pub start: u64,
    /// Number of bytes.
    pub size: u64,
}

impl Range {
    /// The virtual address behind the last byte.
    pub const fn end(&self) -> u64 {
        self.start.wrapping_add(self.size)
    }

    /// Whether there is no byte.
    pub const fn is_empty(&self) -> bool {
        self.size == 0
    }
}

/// PT_TLS: the initial image of the object's thread-local variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tls {
    /// Virtual address of the image. A variable's address is congruent to it modulo `align`.
    pub vaddr: u64,
    /// Bytes of the image; they lie inside a PT_LOAD.
    pub filesz: u64,
    /// Bytes of a thread's block: the image, then zeros.
    pub memsz: u64,
    /// A power of two, at least 1.
    pub align: u64,
}

/// The shape of an object, from program headers that were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Lowest virtual address of a PT_LOAD, rounded down to a page.
    pub lowest: u64,
    /// Highest end of a PT_LOAD, rounded up to a page. `highest - lowest` is the span to reserve.
    pub highest: u64,
    /// Largest p_align of a PT_LOAD, at least a page: what the place of `lowest` should be congruent to it by.
    pub alignment: u64,
    /// p_offset of the first PT_LOAD.
    pub first_load_offset: u64,
    /// PT_DYNAMIC.
    pub dynamic: Option<Range>,
    /// PT_TLS; absent if it is empty.
    pub tls: Option<Tls>,
    /// PT_GNU_RELRO, as in the file (not rounded to pages); absent if it is empty.
    pub relro: Option<Range>,
    /// p_flags of PT_GNU_STACK.
    pub stack_flags: Option<u32>,
    /// PT_INTERP, if a PT_LOAD holds it.
    pub interpreter: Option<Range>,
    /// Virtual address of the program headers, if a PT_LOAD holds them.
    pub program_headers_vaddr: Option<u64>,
    /// Virtual address of PT_GNU_EH_FRAME, if a PT_LOAD holds it.
    pub eh_frame_header: Option<u64>,
}

/// Why an object cannot be mapped. `Display` is the text after "FILE: ".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentError {
    /// No PT_LOAD that has any byte.
    NoLoad,
    /// A PT_LOAD starts before the end of the one before it.
    Order {
        /// Its p_vaddr.
        vaddr: u64,
    },
    /// p_filesz is larger than p_memsz.
    FileSize {
        /// Its p_vaddr.
        vaddr: u64,
    },
    /// p_vaddr + p_memsz or p_offset + p_filesz is no 64-bit number.
    Wrap {
        /// Its p_vaddr.
        vaddr: u64,
    },
    /// A PT_LOAD goes beyond the end of the file.
    TooShort,
    /// p_vaddr and p_offset differ modulo the page size.
    NotCongruent,
    /// p_align is not a power of two.
    Alignment(u64),
    /// p_align is larger than [`MAXIMUM_ALIGNMENT`].
    AlignmentTooLarge(u64),
    /// The object's span is larger than [`MAXIMUM_SPAN`].
    Span(u64),
    /// A segment that must lie inside a PT_LOAD does not.
    Outside {
        /// Its name.
        segment: &'static str,
        /// Its p_vaddr.
        vaddr: u64,
    },
    /// The size of a page, as the system gave it, is not a power of two.
    PageSize(u64),
}

impl fmt::Display for SegmentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SegmentError::NoLoad => formatter.write_str("object file has no loadable segments"),
            SegmentError::Order { vaddr } => {
                write!(formatter, "load segment at {vaddr:#x} starts before the end of the one before it")
            }
            SegmentError::FileSize { vaddr } => {
                write!(formatter, "segment at {vaddr:#x} is larger in the file than in memory")
            }
            SegmentError::Wrap { vaddr } => write!(formatter, "segment at {vaddr:#x} wraps around the address space"),
            SegmentError::TooShort => formatter.write_str("file too short"),
            SegmentError::NotCongruent => formatter.write_str("ELF load command address/offset not page-aligned"),
            SegmentError::Alignment(align) => write!(formatter, "segment alignment {align:#x} is not a power of two"),
            SegmentError::AlignmentTooLarge(align) => {
                write!(formatter, "segment alignment {align:#x} is larger than 1 GiB")
            }
            SegmentError::Span(span) => write!(formatter, "object is too large: its segments span {span:#x} bytes"),
            SegmentError::Outside { segment, vaddr } => {
                write!(formatter, "{segment} at {vaddr:#x} is not inside any loaded segment")
            }
            SegmentError::PageSize(size) => {
                write!(formatter, "page size {size:#x} is not a power of two")
            }
        }
    }
}

impl core::error::Error for SegmentError {}

/// The PT_LOADs that have at least one byte, in the order of the file. Where p_filesz is 0, p_offset means nothing and may
/// lie beyond the end of the file.
pub fn loads<'a>(headers: Table<'a, ProgramHeader>) -> impl Iterator<Item = ProgramHeader> + Clone + 'a {
    headers.iter().filter(|header| header.p_type == PT_LOAD && header.p_memsz != 0)
}

/// 0 and 1 mean no alignment (gABI).
fn alignment(align: u64) -> Result<u64, SegmentError> {
    match align {
        0 => Ok(1),
        _ if !align.is_power_of_two() => Err(SegmentError::Alignment(align)),
        _ if align > MAXIMUM_ALIGNMENT => Err(SegmentError::AlignmentTooLarge(align)),
        _ => Ok(align),
    }
}

impl Layout {
    /// Checks the program headers of an object.
    ///
    /// `program_header_offset` is e_phoff. `page_size` in bytes. `file_size` in bytes; `None` if the kernel has mapped the
    /// object already.
    pub fn new(
        headers: Table<'_, ProgramHeader>,
        program_header_offset: u64,
        page_size: u64,
        file_size: Option<u64>,
    ) -> Result<Layout, SegmentError> {
        if !page_size.is_power_of_two() {
            return Err(SegmentError::PageSize(page_size));
        }
        let mut layout = Self::of_loads(headers, page_size, file_size)?;
        let headers_size = headers.len() as u64 * SIZEOF_PHDR as u64;
        layout.program_headers_vaddr = loads(headers).find_map(|load| {
            let inside = program_header_offset.checked_sub(load.p_offset)?;
            (load.p_filesz.checked_sub(inside)? >= headers_size).then(|| load.p_vaddr.wrapping_add(inside))
        });
        for header in headers {
            let range = Range { start: header.p_vaddr, size: header.p_memsz };
            match header.p_type {
                PT_DYNAMIC => layout.dynamic = Some(inside(headers, range, 1, "PT_DYNAMIC")?),
                PT_TLS => layout.tls = thread_local(headers, &header)?,
                // Linkers round its end up to a page, which may lie beyond the end of its PT_LOAD.
                PT_GNU_RELRO if !range.is_empty() => {
                    layout.relro = Some(inside(headers, range, page_size, "PT_GNU_RELRO")?);
                }
                PT_GNU_STACK => layout.stack_flags = Some(header.p_flags),
                PT_INTERP => layout.interpreter = inside(headers, range, 1, "PT_INTERP").ok(),
                PT_GNU_EH_FRAME => {
                    layout.eh_frame_header = inside(headers, range, 1, "PT_GNU_EH_FRAME").ok().map(|range| range.start);
                }
                _ => {}
            }
        }
        Ok(layout)
    }

    /// The fields that the PT_LOADs alone decide.
    fn of_loads(
        headers: Table<'_, ProgramHeader>,
        page_size: u64,
        file_size: Option<u64>,
    ) -> Result<Layout, SegmentError> {
        let mut layout: Option<Layout> = None;
        let mut previous_end = 0;
        for load in loads(headers) {
            let vaddr = load.p_vaddr;
            if load.p_filesz > load.p_memsz {
                return Err(SegmentError::FileSize { vaddr });
            }
            let end = vaddr.checked_add(load.p_memsz).ok_or(SegmentError::Wrap { vaddr })?;
            let rounded_end = end.checked_next_multiple_of(page_size).ok_or(SegmentError::Wrap { vaddr })?;
            let file_end = load.p_offset.checked_add(load.p_filesz).ok_or(SegmentError::Wrap { vaddr })?;
            if load.p_filesz != 0 && file_size.is_some_and(|size| file_end > size) {
                return Err(SegmentError::TooShort);
            }
            if vaddr.wrapping_sub(load.p_offset) % page_size != 0 {
                return Err(SegmentError::NotCongruent);
            }
            let align = alignment(load.p_align)?;
            if vaddr < previous_end {
                return Err(SegmentError::Order { vaddr });
            }
            previous_end = end;
            let layout = layout.get_or_insert(Layout {
                lowest: vaddr - vaddr % page_size,
                highest: 0,
                alignment: page_size,
                first_load_offset: load.p_offset,
                dynamic: None,
                tls: None,
                relro: None,
                stack_flags: None,
                interpreter: None,
                program_headers_vaddr: None,
                eh_frame_header: None,
            });
            layout.highest = rounded_end;
            layout.alignment = layout.alignment.max(align);
            let span = layout.highest - layout.lowest;
            if span > MAXIMUM_SPAN {
                return Err(SegmentError::Span(span));
            }
        }
        layout.ok_or(SegmentError::NoLoad)
    }

    /// Bytes to reserve for the object: a multiple of the page size.
    pub const fn span(&self) -> u64 {
        self.highest.wrapping_sub(self.lowest)
    }
}

/// `range`, if one PT_LOAD (its end rounded up to a multiple of `granularity`) holds it.
fn inside(
    headers: Table<'_, ProgramHeader>,
    range: Range,
    granularity: u64,
    segment: &'static str,
) -> Result<Range, SegmentError> {
    let holds = loads(headers).any(|load| {
        // The PT_LOADs were checked: no sum of theirs wraps.
        let end = load.p_vaddr.saturating_add(load.p_memsz).checked_next_multiple_of(granularity);
        let left = end.and_then(|end| end.checked_sub(range.start));
        range.start >= load.p_vaddr && left.is_some_and(|left| range.size <= left)
    });
    if holds { Ok(range) } else { Err(SegmentError::Outside { segment, vaddr: range.start }) }
}

fn thread_local(headers: Table<'_, ProgramHeader>, header: &ProgramHeader) -> Result<Option<Tls>, SegmentError> {
    let (vaddr, filesz, memsz) = (header.p_vaddr, header.p_filesz, header.p_memsz);
    if filesz > memsz {
        return Err(SegmentError::FileSize { vaddr });
    }
    let align = alignment(header.p_align)?;
    if memsz == 0 {
        return Ok(None);
    }
    if memsz > MAXIMUM_SPAN {
        return Err(SegmentError::Span(memsz));
    }
    // The zeros behind the image take no place in the object.
    if filesz != 0 {
        inside(headers, Range { start: vaddr, size: filesz }, 1, "PT_TLS")?;
    }
    Ok(Some(Tls { vaddr, filesz, memsz, align }))
}
