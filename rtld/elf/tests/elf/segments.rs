//! The program headers: legal shapes are laid out, each hostile one is refused for its own reason.

use rtld_elf::segments::{MAXIMUM_ALIGNMENT, loads};
use rtld_elf::{Layout, PF_R, PF_W, PF_X, ProgramHeader, Range, SegmentError, Table, Tls};

use goblin::elf64::program_header::{
    PT_DYNAMIC, PT_GNU_EH_FRAME, PT_GNU_RELRO, PT_GNU_STACK, PT_INTERP, PT_LOAD, PT_NOTE, PT_TLS,
};

use crate::support::{PAGE, bytes_of};

/// A PT_LOAD at `vaddr`, at the same offset in the file.
fn load(vaddr: u64, filesz: u64, memsz: u64) -> ProgramHeader {
    segment(PT_LOAD, vaddr, filesz, memsz)
}

fn segment(kind: u32, vaddr: u64, filesz: u64, memsz: u64) -> ProgramHeader {
    ProgramHeader {
        p_type: kind,
        p_flags: PF_R | PF_W,
        p_offset: vaddr,
        p_vaddr: vaddr,
        p_paddr: 0,
        p_filesz: filesz,
        p_memsz: memsz,
        p_align: 8,
    }
}

/// The layout of these headers, which lie at offset 64 of a file of 64 KiB.
fn layout(headers: &[ProgramHeader]) -> Result<Layout, SegmentError> {
    let bytes = bytes_of(headers);
    Layout::new(Table::from_bytes(&bytes), 64, PAGE, Some(0x1_0000))
}

fn refused(headers: &[ProgramHeader], error: SegmentError, text: &str) {
    assert_eq!(layout(headers), Err(error));
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_usual_library() {
    let stack = ProgramHeader { p_flags: PF_R | PF_W | PF_X, ..segment(PT_GNU_STACK, 0, 0, 0) };
    let text = ProgramHeader { p_flags: PF_R | PF_X, p_align: 0x20_0000, ..load(0, 0x1800, 0x1800) };
    let data = load(0x3800, 0x400, 0x5000);
    let found = layout(&[
        text,
        data,
        segment(PT_DYNAMIC, 0x3900, 0x100, 0x100),
        segment(PT_GNU_RELRO, 0x3800, 0x300, 0x800),
        segment(PT_TLS, 0x3810, 8, 0x30),
        segment(PT_INTERP, 0x200, 20, 20),
        segment(PT_GNU_EH_FRAME, 0x700, 20, 20),
        stack,
    ]);
    assert_eq!(
        found,
        Ok(Layout {
            lowest: 0,
            highest: 0x9000,
            alignment: 0x20_0000,
            first_load_offset: 0,
            dynamic: Some(Range { start: 0x3900, size: 0x100 }),
            tls: Some(Tls { vaddr: 0x3810, filesz: 8, memsz: 0x30, align: 8 }),
            relro: Some(Range { start: 0x3800, size: 0x800 }),
            stack_flags: Some(PF_R | PF_W | PF_X),
            interpreter: Some(Range { start: 0x200, size: 20 }),
            program_headers_vaddr: Some(64),
            eh_frame_header: Some(0x700),
        })
    );
}

#[test]
fn legal_oddities_are_accepted() {
    // Ends exactly at the end of the file (patchelf#144).
    assert!(layout(&[load(0x8000, 0x8000, 0x8000)]).is_ok());
    // An empty PT_LOAD, wherever it claims to be.
    let empty = load(0xffff_ffff_ffff_f123, 0, 0);
    assert_eq!(layout(&[empty, load(0x1000, 8, 8)]).map(|layout| (layout.lowest, layout.span())), Ok((0x1000, PAGE)));
    // Two segments in one page, one after the other.
    assert!(layout(&[load(0x1000, 0x100, 0x100), load(0x1100, 0x100, 0x100)]).is_ok());
    // Congruent modulo the page, not modulo p_align (patchelf#492).
    let moved = ProgramHeader { p_offset: 0x3000, p_align: 0x20_0000, ..load(0x20_5000, 8, 8) };
    assert_eq!(layout(&[load(0, 8, 8), moved]).map(|layout| layout.alignment), Ok(0x20_0000));
    // No bytes in the file: where they would lie there does not matter, even beyond its end.
    assert!(layout(&[load(0, 8, 8), load(0x100_0000, 0, 0x5000)]).is_ok());
    // p_align 0 and 1.
    assert!(layout(&[ProgramHeader { p_align: 0, ..load(0, 8, 8) }]).is_ok());
    assert!(layout(&[ProgramHeader { p_align: 1, ..load(0, 8, 8) }]).is_ok());
    let huge = ProgramHeader { p_align: MAXIMUM_ALIGNMENT, ..load(0, 8, 8) };
    assert_eq!(layout(&[huge]).map(|layout| layout.alignment), Ok(1 << 30));
    // A note full of nonsense (BZ 34064), an interpreter that is nowhere.
    let note = segment(PT_NOTE, u64::MAX - 3, u64::MAX, 77);
    let interpreter = segment(PT_INTERP, 0x7777_0000, 20, 20);
    assert_eq!(layout(&[load(0, 8, 8), note, interpreter]).map(|layout| layout.interpreter), Ok(None));
    // Zeros of thread-local storage take no place in the object.
    let tls = segment(PT_TLS, 0x9000, 0, 0x4000);
    assert!(layout(&[load(0, 8, 8), tls]).is_ok_and(|layout| layout.tls.is_some_and(|tls| tls.memsz == 0x4000)));
    assert_eq!(layout(&[load(0, 8, 8), segment(PT_TLS, 0x9000, 0, 0)]).map(|layout| layout.tls), Ok(None));
    // An empty RELRO protects nothing, wherever it is.
    let relro = segment(PT_GNU_RELRO, 0x9000, 0, 0);
    assert_eq!(layout(&[load(0, 8, 8), relro]).map(|layout| layout.relro), Ok(None));
    // The object starts with the page of its first byte.
    let middle = layout(&[load(0x1800, 8, 8)]);
    assert_eq!(middle.map(|layout| (layout.lowest, layout.highest)), Ok((0x1000, 0x2000)));
    // lld rounds the end of RELRO up to a page, beyond the end of its segment.
    assert!(layout(&[load(0x1800, 0x100, 0x100), segment(PT_GNU_RELRO, 0x1800, 0x100, 0x800)]).is_ok());
}

#[test]
fn program_headers_outside_all_segments_have_no_address() {
    let beyond = ProgramHeader { p_offset: 0x1000, ..load(0, 0x100, 0x100) };
    assert_eq!(layout(&[beyond]).map(|layout| layout.program_headers_vaddr), Ok(None));
    // One byte too few.
    assert_eq!(layout(&[load(0, 64 + 55, 64 + 55)]).map(|layout| layout.program_headers_vaddr), Ok(None));
    assert_eq!(layout(&[load(0, 64 + 56, 64 + 56)]).map(|layout| layout.program_headers_vaddr), Ok(Some(64)));
}

#[test]
fn hostile_headers_are_refused() {
    refused(&[], SegmentError::NoLoad, "object file has no loadable segments");
    refused(&[load(0, 0, 0)], SegmentError::NoLoad, "object file has no loadable segments");
    refused(
        &[load(0x2000, 8, 8), load(0x1000, 8, 8)],
        SegmentError::Order { vaddr: 0x1000 },
        "load segment at 0x1000 starts before the end of the one before it",
    );
    refused(
        &[load(0x1000, 8, 0x900), load(0x1800, 8, 8)],
        SegmentError::Order { vaddr: 0x1800 },
        "load segment at 0x1800 starts before the end of the one before it",
    );
    refused(
        &[load(0x1000, 9, 8)],
        SegmentError::FileSize { vaddr: 0x1000 },
        "segment at 0x1000 is larger in the file than in memory",
    );
    let top = ProgramHeader { p_offset: 0, ..load(0xffff_ffff_ffff_f000, 0, 0x1000) };
    let text = "segment at 0xfffffffffffff000 wraps around the address space";
    refused(&[top], SegmentError::Wrap { vaddr: top.p_vaddr }, text);
    refused(&[ProgramHeader { p_memsz: 0xffe, ..top }], SegmentError::Wrap { vaddr: top.p_vaddr }, text);
    let offset = ProgramHeader { p_offset: 0xffff_ffff_ffff_f000, ..load(0x1000, 0x1001, 0x1001) };
    refused(&[offset], SegmentError::Wrap { vaddr: 0x1000 }, "segment at 0x1000 wraps around the address space");
    refused(&[load(0x8000, 0x8001, 0x8001)], SegmentError::TooShort, "file too short");
    refused(
        &[ProgramHeader { p_offset: 0x10, ..load(0x1000, 8, 8) }],
        SegmentError::NotCongruent,
        "ELF load command address/offset not page-aligned",
    );
    refused(
        &[ProgramHeader { p_align: 0x3000, ..load(0, 8, 8) }],
        SegmentError::Alignment(0x3000),
        "segment alignment 0x3000 is not a power of two",
    );
    refused(
        &[ProgramHeader { p_align: 1 << 31, ..load(0, 8, 8) }],
        SegmentError::AlignmentTooLarge(1 << 31),
        "segment alignment 0x80000000 is larger than 1 GiB",
    );
    refused(
        &[load(0, 8, 8), ProgramHeader { p_offset: 0, ..load(1 << 46, 8, 8) }],
        SegmentError::Span((1 << 46) + PAGE),
        "object is too large: its segments span 0x400000001000 bytes",
    );
}

#[test]
fn segments_outside_the_object_are_refused() {
    let base = load(0x1000, 0x100, 0x100);
    for (kind, name) in [(PT_DYNAMIC, "PT_DYNAMIC"), (PT_TLS, "PT_TLS"), (PT_GNU_RELRO, "PT_GNU_RELRO")] {
        for (vaddr, size) in [(0xff8, 16), (0x1f_f000, 16), (0x1080, 0x1000), (0x1010, u64::MAX), (u64::MAX, 1)] {
            // The span of thread-local storage is capped before its place is looked at.
            let size = if kind == PT_TLS { size.min(1 << 40) } else { size };
            let outside = SegmentError::Outside { segment: name, vaddr };
            let text = format!("{name} at {vaddr:#x} is not inside any loaded segment");
            refused(&[base, segment(kind, vaddr, size, size)], outside, &text);
        }
    }
    refused(
        &[base, segment(PT_TLS, 0x1000, 9, 8)],
        SegmentError::FileSize { vaddr: 0x1000 },
        "segment at 0x1000 is larger in the file than in memory",
    );
    let tls = ProgramHeader { p_align: 24, ..segment(PT_TLS, 0x1000, 8, 8) };
    refused(&[base, tls], SegmentError::Alignment(24), "segment alignment 0x18 is not a power of two");
    let tls = segment(PT_TLS, 0x1000, 8, 1 << 50);
    refused(&[base, tls], SegmentError::Span(1 << 50), "object is too large: its segments span 0x4000000000000 bytes");
}

#[test]
fn what_the_kernel_mapped_is_not_compared_with_a_file() {
    let headers = bytes_of(&[load(0x10_0000, 8, 8)]);
    let table = Table::from_bytes(&headers);
    assert_eq!(Layout::new(table, 64, PAGE, Some(8)), Err(SegmentError::TooShort));
    assert!(Layout::new(table, 64, PAGE, None).is_ok());
    assert_eq!(loads(table).count(), 1);
    assert_eq!(Layout::new(table, 64, 3000, None), Err(SegmentError::PageSize(3000)));
    // On pages of 16 KiB the same file is refused in words.
    let headers = bytes_of(&[ProgramHeader { p_offset: 0, ..load(0x1000, 8, 8) }]);
    assert_eq!(Layout::new(Table::from_bytes(&headers), 64, 16384, None), Err(SegmentError::NotCongruent));
}
