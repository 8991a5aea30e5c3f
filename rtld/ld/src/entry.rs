//! The first instructions: from the kernel's hand-over to Rust, and from Rust to the program.
//!
//! Until `relocate_self` has run, no global may be touched (its address may be taken, which is relative to the code's) and nothing
//! may be called through an address in memory.

use crate::{heap, start};
use core::arch::global_asm;
use goblin::elf64::header::Header;
use goblin::elf64::program_header::{PF_W, PT_LOAD, ProgramHeader};
use goblin::elf64::reloc::R_X86_64_RELATIVE;
use rtld_elf::{Dyn, Rela};
use rtld_sys::memory;

global_asm!(
    r#"
    .text
    .globl _start
    .hidden _DYNAMIC
    .type _start,@function
_start:
    .cfi_startproc
    .cfi_undefined rip
    xor     ebp, ebp
    mov     r12, rsp
    mov     rdi, rsp
    lea     rsi, [rip + __ehdr_start]
    lea     rdx, [rip + _DYNAMIC]
    and     rsp, -16
    call    {start}
    # The program starts with the stack as the kernel made it (a shorter one when it was started through us directly)
    # and with our finaliser in rdx, for its start code to register with atexit (psABI 3.4.1).
    mov     rsp, r12
    xor     r12d, r12d
    jmp     rax
    .cfi_endproc
    .size _start, . - _start
"#,
    start = sym enter,
);

/// What `_start` needs to go on: rax and rdx.
#[repr(C)]
struct Departure {
    entry: usize,
    finaliser: usize,
}

/// From `_start`: the stack as the kernel left it, the first byte of our image, our dynamic section.
extern "C" fn enter(stack: usize, base: usize, dynamic: *const Dyn) -> Departure {
    // SAFETY: _start passes the address of this image.
    unsafe { prepare_data(base) };
    // SAFETY: _start passes the addresses of this image; nothing else has run yet.
    unsafe { relocate_self(base, dynamic) };
    let departure = start::start(stack, base);
    Departure { entry: departure.entry, finaliser: departure.finaliser }
}

/// What the linker aligns segments to on x86-64.
const PAGE: usize = 4096;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_RELR: u64 = 36;
const DT_RELRSZ: u64 = 35;

/// Makes the pages of our data, from the first that relocation writes to, to those of the heap that every start fills: one call in
/// place of a dozen faults.
///
/// # Safety
/// `base` must be where this image is loaded.
#[inline(always)]
unsafe fn prepare_data(base: usize) {
    let header = core::ptr::with_exposed_provenance::<Header>(base);
    // SAFETY: the image begins with its ELF header, and its first segment holds the program headers.
    let header = unsafe { header.read() };
    let first = core::ptr::with_exposed_provenance::<ProgramHeader>(base.wrapping_add(header.e_phoff as usize));
    for index in 0..usize::from(header.e_phnum) {
        // SAFETY: as above.
        let segment = unsafe { first.wrapping_add(index).read() };
        if segment.p_type == PT_LOAD && segment.p_flags & PF_W != 0 {
            let start = base.wrapping_add(segment.p_vaddr as usize) & !(PAGE - 1);
            memory::prepare_to_write(start, heap::first_end().wrapping_sub(start));
            return;
        }
    }
}

/// Applies our own relocations. The artifact has no others than RELATIVE and RELR (a test asserts it).
///
/// # Safety
/// `base` must be where this image is loaded and `dynamic` its dynamic section; must run once, first.
#[inline(always)]
unsafe fn relocate_self(base: usize, dynamic: *const Dyn) {
    let (mut rela, mut rela_size, mut relr, mut relr_size) = (0, 0, 0, 0);
    let mut entry = dynamic;
    loop {
        // SAFETY: the linker ends the section with DT_NULL, and we stop there.
        let Dyn { d_tag, d_val } = unsafe { entry.read() };
        match d_tag {
            0 => break,
            DT_RELA => rela = d_val as usize,
            DT_RELASZ => rela_size = d_val as usize,
            DT_RELR => relr = d_val as usize,
            DT_RELRSZ => relr_size = d_val as usize,
            _ => {}
        }
        entry = entry.wrapping_add(1);
    }
    let table = core::ptr::with_exposed_provenance::<Rela>(base.wrapping_add(rela));
    for index in 0..rela_size / size_of::<Rela>() {
        // SAFETY: inside our own relocation table.
        let relocation = unsafe { table.wrapping_add(index).read() };
        if relocation.r_info as u32 == R_X86_64_RELATIVE {
            let place = base.wrapping_add(relocation.r_offset as usize);
            let word = core::ptr::with_exposed_provenance_mut::<usize>(place);
            // SAFETY: the linker made the relocation for a word of our own data.
            unsafe { word.write(base.wrapping_add_signed(relocation.r_addend as isize)) };
        }
    }
    let table = core::ptr::with_exposed_provenance::<usize>(base.wrapping_add(relr));
    let mut next = base;
    for index in 0..relr_size / size_of::<usize>() {
        // SAFETY: inside our own table of packed relocations.
        let entry = unsafe { table.wrapping_add(index).read() };
        if entry & 1 == 0 {
            // SAFETY: the linker made the entry for a word of our own data.
            unsafe { rebase(base.wrapping_add(entry), base) };
            next = base.wrapping_add(entry).wrapping_add(8);
        } else {
            for bit in 0..63 {
                if entry >> (bit + 1) & 1 != 0 {
                    // SAFETY: as above.
                    unsafe { rebase(next.wrapping_add(bit * 8), base) };
                }
            }
            next = next.wrapping_add(63 * 8);
        }
    }
}

#[inline(always)]
unsafe fn rebase(place: usize, base: usize) {
    let word = core::ptr::with_exposed_provenance_mut::<usize>(place);
    // SAFETY: the caller names a word of our own data.
    let value = unsafe { word.read() };
    // SAFETY: the same word.
    unsafe { word.write(value.wrapping_add(base)) };
}
