//! The dynamic thread vector in glibc's form: where each TLS module's block of a thread lies.
//!
//! Owns the layout; the caller owns the memory and decides when to grow. The form is glibc's because libc.so.6 looks into it:
//! when it uses a stack again it reads the capacity, calls free() on each element's second word and clears the elements.
//! So the second word is always zero, and who allocated a block is remembered elsewhere.
//!
//! An element is two words. Element -1 holds the capacity, element 0 the generation, element N (N from 1 to the capacity)
//! module N's block. The descriptor holds the address of element 0.

use crate::region::{OutsideRegion, Region};

/// What an element holds that has no block yet.
pub const UNALLOCATED: usize = usize::MAX;

/// Size of an element in bytes.
const ELEMENT: usize = 16;

/// A vector, by the address that is stored in the thread descriptor.
#[derive(Debug, Clone, Copy)]
pub struct Dtv {
    /// From element -1 on.
    elements: Region,
}

impl Dtv {
    /// Bytes that a vector for `capacity` modules needs, aligned to 16; `None` if that is more than memory can be.
    pub const fn size_for(capacity: usize) -> Option<usize> {
        match capacity.checked_add(2) {
            Some(elements) => elements.checked_mul(ELEMENT),
            None => None,
        }
    }

    /// Makes a vector in `memory`, with as many elements as it holds, all unallocated.
    pub fn new(memory: Region, generation: usize) -> Result<Dtv, OutsideRegion> {
        let dtv = Dtv { elements: memory };
        let capacity =
            (memory.size() / ELEMENT).checked_sub(2).ok_or(OutsideRegion { offset: ELEMENT, size: memory.size() })?;
        memory.write_usize(0, capacity)?;
        memory.write_usize(8, 0)?;
        dtv.set_generation(generation)?;
        memory.write_usize(ELEMENT + 8, 0)?;
        for module in 1..=capacity {
            dtv.set(module, UNALLOCATED)?;
        }
        Ok(dtv)
    }

    /// The vector whose element 0 is at `address`.
    ///
    /// # Safety
    /// A vector made by `new` (by us, or copied by glibc) lies there, and the contract of [`Region::new`] holds for it.
    pub unsafe fn at(address: usize) -> Result<Dtv, OutsideRegion> {
        let start = address.wrapping_sub(ELEMENT);
        // SAFETY: element -1 precedes element 0 (the caller's promise).
        let head = unsafe { Region::new(start, 2 * ELEMENT) };
        let capacity = head.read_u64(0)? as usize;
        let size = Self::size_for(capacity).ok_or(OutsideRegion { offset: 0, size: 0 })?;
        // SAFETY: the vector was made with that capacity (the caller's promise).
        let elements = unsafe { Region::new(start, size) };
        Ok(Dtv { elements })
    }

    /// What the thread descriptor's `dtv` holds: the address of element 0.
    pub const fn address(self) -> usize {
        self.elements.address(ELEMENT)
    }

    /// Number of modules it has room for.
    pub const fn capacity(self) -> usize {
        self.elements.size() / ELEMENT - 2
    }

    /// The generation up to which the elements are current.
    pub fn generation(self) -> Result<usize, OutsideRegion> {
        Ok(self.elements.read_u64(ELEMENT)? as usize)
    }

    /// Says up to which generation the elements are current.
    pub fn set_generation(self, generation: usize) -> Result<(), OutsideRegion> {
        self.elements.write_usize(ELEMENT, generation)
    }

    /// Offset of a module's element; modules count from 1.
    fn element(self, module: usize) -> Result<usize, OutsideRegion> {
        let outside = OutsideRegion { offset: module, size: self.elements.size() };
        if module == 0 {
            return Err(outside);
        }
        module.checked_add(1).and_then(|index| index.checked_mul(ELEMENT)).ok_or(outside)
    }

    /// Address of the module's block, or [`UNALLOCATED`].
    pub fn get(self, module: usize) -> Result<usize, OutsideRegion> {
        Ok(self.elements.read_u64(self.element(module)?)? as usize)
    }

    /// Stores the address of the module's block.
    pub fn set(self, module: usize, block: usize) -> Result<(), OutsideRegion> {
        let element = self.element(module)?;
        self.elements.write_usize(element, block)?;
        self.elements.write_usize(element + 8, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_glibcs() {
        let mut memory = [[7u64; 2]; 6];
        // SAFETY: the array is ours and not touched otherwise while the region is used.
        let region = unsafe { Region::new((&raw mut memory).expose_provenance(), Dtv::size_for(4).unwrap()) };
        let dtv = Dtv::new(region, 3).unwrap();
        dtv.set(2, 0x1000).unwrap();
        assert_eq!(dtv.address(), region.address(16));
        assert_eq!(dtv.set(5, 1).map_err(|error| error.size), Err(96));
        assert!(dtv.get(0).is_err());
        // SAFETY: made just now.
        let again = unsafe { Dtv::at(dtv.address()) }.unwrap();
        assert_eq!(
            (again.capacity(), again.generation(), again.get(2), again.get(4)),
            (4, Ok(3), Ok(0x1000), Ok(UNALLOCATED))
        );
        let unallocated = [u64::MAX, 0];
        assert_eq!(memory, [[4, 0], [3, 0], unallocated, [0x1000, 0], unallocated, unallocated]);
    }

    #[test]
    fn memory_without_room_is_refused() {
        let mut memory = [0u64; 3];
        // SAFETY: the array is ours and not touched otherwise while the region is used.
        let region = unsafe { Region::new((&raw mut memory).expose_provenance(), 24) };
        assert!(Dtv::new(region, 1).is_err());
        assert_eq!(Dtv::size_for(usize::MAX / 16), None);
    }
}
