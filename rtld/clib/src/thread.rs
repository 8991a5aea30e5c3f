//! The main thread's descriptor (`struct pthread`): what glibc's loader would have left in it.
//!
//! Owns the stores at the thread pointer and the three registrations with the kernel. The TLS blocks below the thread pointer
//! and the dynamic thread vector are the caller's.

use rtld_sys::thread;

use crate::host::Glibc;
use crate::offsets::{RseqPlace, StackOwner};
use crate::region::{OutsideRegion, Region};

/// Offsets of the head of the descriptor (`tcbhead_t`), part of the psABI and of what compilers emit.
mod head {
    pub const SELF: usize = 0;
    pub const DTV: usize = 8;
    pub const SELF_AGAIN: usize = 16;
    pub const STACK_GUARD: usize = 0x28;
    pub const POINTER_GUARD: usize = 0x30;
    pub const SIZE: usize = 0x38;
}

/// Size of the kernel's `struct robust_list_head`.
const ROBUST_HEAD_SIZE: usize = 24;
/// From a mutex's list element back to its lock word.
const ROBUST_FUTEX_OFFSET: i64 = -32;
/// The size of the first `struct rseq`, and how much of it was used: the least that the kernel takes and glibc reports.
const RSEQ_SIZE: usize = 32;
const RSEQ_USED: usize = 20;
/// Where `struct rseq` has its cpu_id, and what that says when the area is not registered.
const RSEQ_CPU_ID: usize = 4;
const RSEQ_UNINITIALISED: u32 = -1i32 as u32;
const RSEQ_FAILED: u32 = -2i32 as u32;
/// Alignment that rseq(2) wants.
const RSEQ_ALIGN: usize = 32;
/// `STACK_MODE` of a stack that glibc did not allocate.
const STACK_MODE_USER: u32 = 2;

/// What the main thread starts with. Addresses are addresses in memory.
#[derive(Debug, Clone, Copy)]
pub struct ThreadFacts {
    /// Its vector, as `Dtv::address` gives it.
    pub dtv: usize,
    /// The 16 bytes of AT_RANDOM; `None` if the kernel gave none.
    pub random: Option<[u64; 2]>,
    /// The stack pointer at entry.
    pub initial_stack: usize,
    /// Restartable sequences.
    pub rseq: RseqFacts,
}

/// What the kernel says about restartable sequences, and what the user wants.
#[derive(Debug, Clone, Copy)]
pub struct RseqFacts {
    /// The tunable glibc.pthread.rseq is not 0.
    pub enabled: bool,
    /// AT_RSEQ_FEATURE_SIZE in bytes, 0 if absent.
    pub feature_size: usize,
    /// AT_RSEQ_ALIGN in bytes, 0 if absent.
    pub align: usize,
    /// How far below the thread pointer the block lies that `Glibc::extra_tls` asked for; not used if it asked for none.
    pub extra_tls: usize,
}

/// Stores the head of a thread descriptor, which code without any C library uses too.
///
/// # Safety
/// At least 0x38 bytes at `descriptor` are the descriptor of a thread that does not run yet, or the calling thread's.
pub unsafe fn write_head(descriptor: usize, dtv: usize, random: Option<[u64; 2]>) -> Result<(), OutsideRegion> {
    // SAFETY: the caller's promise.
    let block = unsafe { Region::new(descriptor, head::SIZE) };
    block.write_usize(head::SELF, descriptor)?;
    block.write_usize(head::DTV, dtv)?;
    block.write_usize(head::SELF_AGAIN, descriptor)?;
    if let Some([stack_guard, pointer_guard]) = random {
        // The lowest byte in memory is 0, so that no string function writes or reads over the guard.
        block.write_u64(head::STACK_GUARD, stack_guard & !0xff)?;
        block.write_u64(head::POINTER_GUARD, pointer_guard)?;
    }
    Ok(())
}

impl Glibc {
    /// Size and alignment in bytes of a block that this release wants below the thread pointer, after the TLS blocks of the
    /// objects that are loaded at start ("extra TLS", for rseq). Zeroed.
    pub fn extra_tls(&self, rseq: &RseqFacts) -> Option<(usize, usize)> {
        if self.offsets.thread.rseq != RseqPlace::ExtraTls {
            return None;
        }
        let align = if rseq.align.is_power_of_two() { rseq.align.max(RSEQ_ALIGN) } else { RSEQ_ALIGN };
        let size = rseq.feature_size.max(RSEQ_SIZE).checked_next_multiple_of(align)?;
        Some((size, align))
    }

    /// Makes a zeroed block the descriptor of the calling thread, puts it into glibc's list of stacks, and registers its words
    /// with the kernel. The thread pointer need not be set yet.
    ///
    /// # Safety
    /// `descriptor_size` bytes at `descriptor` (and the block that `extra_tls` asked for) are zeroed memory that lives as long
    /// as the process and is aligned to 64; `publish` was called; this is the only thread.
    pub unsafe fn prepare_main_thread(&self, descriptor: usize, facts: &ThreadFacts) -> Result<(), OutsideRegion> {
        let offsets = &self.offsets.thread;
        // SAFETY: the caller's promise.
        unsafe { write_head(descriptor, facts.dtv, facts.random) }?;
        // SAFETY: the caller's promise.
        let block = unsafe { Region::new(descriptor, offsets.size) };
        self.join_stack_list(block)?;
        block.write_usize(offsets.specific, block.address(offsets.specific_first_block))?;
        if let Some(events) = self.symbols.initial_report_events {
            block.write_u8(offsets.report_events, events.read_u8(0)?)?;
        }
        match offsets.stack_owner {
            StackOwner::Flag(offset) => block.write_u8(offset, 1)?,
            StackOwner::Mode(offset) => block.write_u32(offset, STACK_MODE_USER)?,
        }
        // Where the stack begins is not known: it counts as all memory below its end.
        block.write_usize(offsets.stack_block_size, facts.initial_stack)?;
        // SAFETY: the descriptor lives as long as the process.
        let id = unsafe { thread::set_tid_address(block.address(offsets.tid)) };
        block.write_u32(offsets.tid, id as u32)?;
        self.register_robust_list(block)?;
        self.register_rseq(block, &facts.rseq)
    }

    /// `list_add (&pd->list, &_dl_stack_user)`, the list being empty.
    fn join_stack_list(&self, block: Region) -> Result<(), OutsideRegion> {
        let Some(head) = self.offsets.global.stack_user else {
            return Ok(());
        };
        let list = self.offsets.thread.list;
        let (head_address, element) = (self.global.address(head), block.address(list));
        block.write_usize(list, head_address)?;
        block.write_usize(list + 8, head_address)?;
        self.global.write_usize(head, element)?;
        self.global.write_usize(head + 8, element)
    }

    fn register_robust_list(&self, block: Region) -> Result<(), OutsideRegion> {
        let offsets = &self.offsets.thread;
        let head = block.address(offsets.robust_head);
        block.write_usize(offsets.robust_previous, head)?;
        block.write_usize(offsets.robust_head, head)?;
        block.write_u64(offsets.robust_head + 8, ROBUST_FUTEX_OFFSET as u64)?;
        // SAFETY: an empty list in the descriptor, which lives as long as the process.
        let registered = unsafe { thread::set_robust_list(head, ROBUST_HEAD_SIZE) };
        // A kernel without robust mutexes is glibc's to notice when one is used.
        let _ = registered;
        Ok(())
    }

    fn register_rseq(&self, block: Region, facts: &RseqFacts) -> Result<(), OutsideRegion> {
        let (offset, length, used) = match self.offsets.thread.rseq {
            RseqPlace::None => return Ok(()),
            RseqPlace::Descriptor(offset) => (offset as isize, RSEQ_SIZE, RSEQ_USED),
            RseqPlace::ExtraTls => {
                let used = facts.feature_size.max(RSEQ_USED);
                (0isize.wrapping_sub_unsigned(facts.extra_tls), used.max(RSEQ_SIZE), used)
            }
        };
        let address = block.address(0).wrapping_add_signed(offset);
        // SAFETY: a part of the descriptor, or the block that extra_tls asked for (contract of prepare_main_thread).
        let area = unsafe { Region::new(address, RSEQ_SIZE) };
        area.write_u32(RSEQ_CPU_ID, RSEQ_UNINITIALISED)?;
        // SAFETY: the area is zeroed but for its cpu_id, aligned, of that length, and lives as long as the process.
        let registered = facts.enabled && unsafe { thread::register_rseq(address, length) }.is_ok();
        if !registered {
            area.write_u32(RSEQ_CPU_ID, RSEQ_FAILED)?;
        }
        if let Some(symbol) = self.symbols.rseq_offset {
            symbol.write_u64(0, offset as u64)?;
        }
        if let Some(symbol) = self.symbols.rseq_size {
            symbol.write_u32(0, if registered { used as u32 } else { 0 })?;
        }
        Ok(())
    }
}
