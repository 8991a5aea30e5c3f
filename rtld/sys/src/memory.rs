//! Mappings: mmap(2), mprotect(2), munmap(2) in the forms a loader uses.

use crate::Errno;
use crate::call::call;
use linux_raw_sys::general as kernel;

/// May be read.
pub const READ: u32 = kernel::PROT_READ;
/// May be written.
pub const WRITE: u32 = kernel::PROT_WRITE;
/// May be executed.
pub const EXECUTE: u32 = kernel::PROT_EXEC;
/// No access at all.
pub const NONE: u32 = kernel::PROT_NONE;
/// For the main thread's stack: reach down to the end of the growing mapping.
pub const GROWS_DOWN: u32 = kernel::PROT_GROWSDOWN;

const NO_FILE: usize = usize::MAX;

/// Maps fresh zero pages anywhere.
pub fn map_anonymous(length: usize, protection: u32) -> Result<usize, Errno> {
    let flags = (kernel::MAP_PRIVATE | kernel::MAP_ANONYMOUS) as usize;
    // SAFETY: the kernel picks an unused range.
    unsafe { call(kernel::__NR_mmap, [0, length, protection as usize, flags, NO_FILE, 0]) }
}

/// Maps part of a file privately anywhere (`hint` 0), or near `hint`.
pub fn map_file(hint: usize, length: usize, protection: u32, descriptor: i32, offset: u64) -> Result<usize, Errno> {
    let flags = kernel::MAP_PRIVATE as usize;
    let arguments = [hint, length, protection as usize, flags, descriptor as usize, offset as usize];
    // SAFETY: without MAP_FIXED the kernel picks an unused range.
    unsafe { call(kernel::__NR_mmap, arguments) }
}

/// Reserves address space without access; with `exact`, at that address or not at all.
pub fn reserve(length: usize, exact: Option<usize>) -> Result<usize, Errno> {
    let exactly = if exact.is_some() { Placing::Free.flag() } else { 0 };
    let flags = (kernel::MAP_PRIVATE | kernel::MAP_ANONYMOUS | kernel::MAP_NORESERVE | exactly) as usize;
    // SAFETY: nothing that exists is replaced.
    let address = unsafe { call(kernel::__NR_mmap, [exact.unwrap_or(0), length, 0, flags, NO_FILE, 0]) }?;
    if let Some(wanted) = exact {
        Placing::Free.check(Ok(address), wanted, length)?;
    }
    Ok(address)
}

/// When the pages of a mapping are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// Each when it is first used.
    Later,
    /// At once, those of a writable private mapping as if they had been written to.
    Now,
}

/// What a mapping at a certain address does with what is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placing {
    /// It takes the place of what the caller reserved.
    Over,
    /// It fails if anything is there. Where nothing is, the kernel has nothing to take apart.
    Free,
}

impl Placing {
    fn flag(self) -> u32 {
        match self {
            Placing::Over => kernel::MAP_FIXED,
            Placing::Free => kernel::MAP_FIXED_NOREPLACE,
        }
    }

    /// The result of a mapping that was to be at `wanted`. A kernel that does not know MAP_FIXED_NOREPLACE takes the address as a
    /// hint.
    fn check(self, result: Result<usize, Errno>, wanted: usize, length: usize) -> Result<(), Errno> {
        let address = result?;
        if self == Placing::Free && address != wanted {
            // SAFETY: the range was mapped a moment ago and nobody knows of it.
            let _ = unsafe { unmap(address, length) };
            return Err(Errno::NOMEM);
        }
        Ok(())
    }
}

/// Maps part of a file at an address.
///
/// # Safety
/// With [`Placing::Over`] the range must belong to the caller, with nothing in it that is still used.
pub unsafe fn map_file_at(
    address: usize,
    length: usize,
    protection: u32,
    (descriptor, offset): (i32, u64),
    fill: Fill,
    placing: Placing,
) -> Result<(), Errno> {
    let populate = if fill == Fill::Now { kernel::MAP_POPULATE } else { 0 };
    let flags = (kernel::MAP_PRIVATE | placing.flag() | populate) as usize;
    let arguments = [address, length, protection as usize, flags, descriptor as usize, offset as usize];
    // SAFETY: the caller owns the range, or nothing that exists is replaced.
    let result = unsafe { call(kernel::__NR_mmap, arguments) };
    placing.check(result, address, length)
}

/// Maps fresh zero pages at an address.
///
/// # Safety
/// As for [`map_file_at`].
pub unsafe fn map_anonymous_at(address: usize, length: usize, protection: u32, placing: Placing) -> Result<(), Errno> {
    let flags = (kernel::MAP_PRIVATE | kernel::MAP_ANONYMOUS | placing.flag()) as usize;
    // SAFETY: the caller owns the range, or nothing that exists is replaced.
    let result = unsafe { call(kernel::__NR_mmap, [address, length, protection as usize, flags, NO_FILE, 0]) };
    placing.check(result, address, length)
}

/// Maps fresh zero pages for a table that is filled at random and soon given back. With `eagerly`, one of at least a huge page may
/// get huge pages, where the system allows them to who asks, and a smaller one is made with all its pages, in one fault.
pub fn map_scratch(length: usize, eagerly: bool) -> Result<usize, Errno> {
    const HUGE: usize = 2 << 20;
    let all = if eagerly && length < HUGE { kernel::MAP_POPULATE } else { 0 };
    let flags = (kernel::MAP_PRIVATE | kernel::MAP_ANONYMOUS | all) as usize;
    // SAFETY: the kernel picks an unused range.
    let address = unsafe { call(kernel::__NR_mmap, [0, length, (READ | WRITE) as usize, flags, NO_FILE, 0]) }?;
    if eagerly && all == 0 {
        want_huge_pages(address, length);
    }
    Ok(address)
}

/// Asks for huge pages in a range. A hint: without them there are small ones.
pub fn want_huge_pages(address: usize, length: usize) {
    // SAFETY: the advice changes nothing that a program could see.
    let _ = unsafe { call(kernel::__NR_madvise, [address, length, kernel::MADV_HUGEPAGE as usize, 0, 0, 0]) };
}

/// Makes the pages of a range as if each had been written to, in one call in place of one fault each (Linux 5.14). A hint: where
/// the kernel does not do it, the faults come later.
pub fn prepare_to_write(address: usize, length: usize) {
    let advice = kernel::MADV_POPULATE_WRITE as usize;
    // SAFETY: the contents stay as they are; a range that is not writable is refused.
    let _ = unsafe { call(kernel::__NR_madvise, [address, length, advice, 0, 0, 0]) };
}

/// Gives the memory of an anonymous range back: it reads as zero from now on. The kernel refuses where pages are locked.
///
/// # Safety
/// Nothing in the range may be used any more.
pub unsafe fn discard(address: usize, length: usize) -> Result<(), Errno> {
    let advice = kernel::MADV_DONTNEED as usize;
    // SAFETY: the caller answers for the users of the range.
    unsafe { call(kernel::__NR_madvise, [address, length, advice, 0, 0, 0]) }.map(drop)
}

/// Changes the protection of a range.
///
/// # Safety
/// No code may rely on the access that is taken away.
pub unsafe fn protect(address: usize, length: usize, protection: u32) -> Result<(), Errno> {
    // SAFETY: the caller answers for the users of the range.
    unsafe { call(kernel::__NR_mprotect, [address, length, protection as usize, 0, 0, 0]) }.map(drop)
}

/// The size of what [`map_wiped_on_fork`] maps.
pub const WIPED_SIZE: usize = 4096;

/// Maps a page that is all zero again in the child of a fork.
pub fn map_wiped_on_fork() -> Result<usize, Errno> {
    let page = map_anonymous(WIPED_SIZE, READ | WRITE)?;
    let advice = kernel::MADV_WIPEONFORK as usize;
    // SAFETY: the page is fresh and ours.
    match unsafe { call(kernel::__NR_madvise, [page, WIPED_SIZE, advice, 0, 0, 0]) } {
        Ok(_) => Ok(page),
        Err(error) => {
            // SAFETY: nobody knows of the page.
            let _ = unsafe { unmap(page, WIPED_SIZE) };
            Err(error)
        }
    }
}

/// Unmaps a range.
///
/// # Safety
/// Nothing in the range may be used any more.
pub unsafe fn unmap(address: usize, length: usize) -> Result<(), Errno> {
    // SAFETY: the caller answers for the users of the range.
    unsafe { call(kernel::__NR_munmap, [address, length, 0, 0, 0, 0]) }.map(drop)
}
