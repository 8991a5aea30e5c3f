//! A range of memory that glibc and we both use: reads and writes at checked offsets.
//!
//! Owns all access of this crate to memory by address (`unsafe` in `read` and `write` alone). Knows nothing of what the words
//! mean. The memory is reached by its number, as the kernel and glibc reach it: no reference to it ever exists.

use core::fmt;

/// Memory from `base` on, `size` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    base: usize,
    size: usize,
}

/// An access would have left its region: the table of offsets does not fit the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutsideRegion {
    /// Offset of the access.
    pub offset: usize,
    /// Size of the region.
    pub size: usize,
}

impl fmt::Display for OutsideRegion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "offset {} is outside the C library's structure of {} bytes", self.offset, self.size)
    }
}

impl core::error::Error for OutsideRegion {}

/// An integer of memory: any pattern of bits is a value.
trait Word: Copy {}
impl Word for u8 {}
impl Word for u32 {}
impl Word for u64 {}

impl Region {
    /// The region at `base`.
    ///
    /// # Safety
    /// Whenever a method of this value (or of a copy) is called, `size` bytes at `base` are mapped, readable, and for the
    /// `write` methods writable; no Rust reference to them exists, and no other thread writes the word in question.
    pub const unsafe fn new(base: usize, size: usize) -> Region {
        Region { base, size }
    }

    /// Address of the byte at `offset`, unchecked.
    pub const fn address(self, offset: usize) -> usize {
        self.base.wrapping_add(offset)
    }

    /// Size in bytes.
    pub const fn size(self) -> usize {
        self.size
    }

    /// Address of a word inside the region.
    fn place<T: Word>(self, offset: usize) -> Result<usize, OutsideRegion> {
        let end = offset.checked_add(size_of::<T>());
        match end {
            Some(end) if end <= self.size => Ok(self.base.wrapping_add(offset)),
            _ => Err(OutsideRegion { offset, size: self.size }),
        }
    }

    fn read<T: Word>(self, offset: usize) -> Result<T, OutsideRegion> {
        let place = core::ptr::with_exposed_provenance::<T>(self.place::<T>(offset)?);
        // SAFETY: the word lies inside the region, which is readable (contract of new); a Word has no invalid values.
        Ok(unsafe { place.read_unaligned() })
    }

    fn write<T: Word>(self, offset: usize, value: T) -> Result<(), OutsideRegion> {
        let place = core::ptr::with_exposed_provenance_mut::<T>(self.place::<T>(offset)?);
        // SAFETY: the word lies inside the region, which is writable and not borrowed (contract of new).
        unsafe { place.write_unaligned(value) };
        Ok(())
    }

    /// The byte at `offset`.
    pub fn read_u8(self, offset: usize) -> Result<u8, OutsideRegion> {
        self.read(offset)
    }

    /// The 4 bytes at `offset`.
    pub fn read_u32(self, offset: usize) -> Result<u32, OutsideRegion> {
        self.read(offset)
    }

    /// The 8 bytes at `offset`.
    pub fn read_u64(self, offset: usize) -> Result<u64, OutsideRegion> {
        self.read(offset)
    }

    /// Stores one byte.
    pub fn write_u8(self, offset: usize, value: u8) -> Result<(), OutsideRegion> {
        self.write(offset, value)
    }

    /// Stores 4 bytes.
    pub fn write_u32(self, offset: usize, value: u32) -> Result<(), OutsideRegion> {
        self.write(offset, value)
    }

    /// Stores 8 bytes.
    pub fn write_u64(self, offset: usize, value: u64) -> Result<(), OutsideRegion> {
        self.write(offset, value)
    }

    /// Stores an address or a size.
    pub fn write_usize(self, offset: usize, value: usize) -> Result<(), OutsideRegion> {
        self.write(offset, value as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_stays_inside() {
        let mut memory = [0u64; 2];
        // SAFETY: the array is ours and not touched otherwise while the region is used.
        let region = unsafe { Region::new((&raw mut memory).expose_provenance(), 16) };
        assert_eq!(region.write_u64(8, 0x0102_0304_0506_0708), Ok(()));
        assert_eq!(region.write_u64(9, 1), Err(OutsideRegion { offset: 9, size: 16 }));
        assert_eq!(region.write_u32(13, 1), Err(OutsideRegion { offset: 13, size: 16 }));
        assert_eq!(region.write_u8(16, 1), Err(OutsideRegion { offset: 16, size: 16 }));
        assert_eq!(region.read_u64(usize::MAX - 3), Err(OutsideRegion { offset: usize::MAX - 3, size: 16 }));
        assert_eq!(region.read_u64(8), Ok(0x0102_0304_0506_0708));
        assert_eq!(region.read_u32(12), Ok(0x0102_0304));
        assert_eq!(region.read_u8(15), Ok(1));
        assert_eq!(region.read_u64(0), Ok(0));
    }
}
