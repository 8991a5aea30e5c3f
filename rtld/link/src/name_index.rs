//! Which objects go by a name: an index of the names of an object set, so that a DT_NEEDED of a known library costs one probe
//! however many there are. It holds hashes and objects only; whether an object goes by the very name is its entry's to say.

use crate::fallible::{OutOfMemory, try_extend, try_filled};
use crate::object::ObjectIndex;
use alloc::vec::Vec;
use rtld_elf::gnu_hash;

/// The hash of a name and one more than the index of the object; 0 for a free slot.
type Slot = (u32, u32);

/// Open addressing with linear probing; at most half full.
#[derive(Debug, Default)]
pub struct NameIndex {
    slots: Vec<Slot>,
    used: usize,
}

impl NameIndex {
    /// Without names.
    pub const fn new() -> NameIndex {
        NameIndex { slots: Vec::new(), used: 0 }
    }

    /// The same names in an index of its own.
    pub fn try_clone(&self) -> Result<NameIndex, OutOfMemory> {
        let mut slots = Vec::new();
        try_extend(&mut slots, &self.slots)?;
        Ok(NameIndex { slots, used: self.used })
    }

    /// Makes room for `more` names.
    pub fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        let needed = self.used.saturating_add(more).saturating_mul(2);
        if needed <= self.slots.len() {
            return Ok(());
        }
        let capacity = needed.max(64).checked_next_power_of_two().ok_or(OutOfMemory)?;
        let old = core::mem::replace(&mut self.slots, try_filled((0, 0), capacity)?);
        self.used = 0;
        for (hash, object) in old.into_iter().filter(|&(_, object)| object != 0) {
            self.place(hash, object);
        }
        Ok(())
    }

    /// Adds a name, for which there must be room.
    pub fn add(&mut self, name: &[u8], object: ObjectIndex) {
        if !name.is_empty() && self.used.saturating_mul(2) < self.slots.len() {
            self.place(gnu_hash(name), object.0.saturating_add(1));
        }
    }

    fn place(&mut self, hash: u32, object: u32) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        while let Some(slot) = self.slots.get_mut(place) {
            if slot.1 == 0 {
                *slot = (hash, object);
                self.used += 1;
                return;
            }
            place = place.wrapping_add(1) & mask;
        }
    }

    /// Takes all names of all objects out; the room stays.
    pub fn clear(&mut self) {
        self.slots.fill((0, 0));
        self.used = 0;
    }

    /// The objects that may go by a name, in no order; one may come twice.
    pub fn candidates(&self, name: &[u8]) -> impl Iterator<Item = ObjectIndex> + '_ {
        let hash = gnu_hash(name);
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        core::iter::from_fn(move || {
            loop {
                let &(known, object) = self.slots.get(place).filter(|slot| slot.1 != 0)?;
                place = place.wrapping_add(1) & mask;
                if known == hash {
                    return Some(ObjectIndex(object.wrapping_sub(1)));
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(index: &NameIndex, name: &[u8]) -> Vec<u32> {
        let mut found: Vec<u32> = index.candidates(name).map(|object| object.0).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn every_name_leads_to_its_objects() {
        let mut index = NameIndex::new();
        assert_eq!(found(&index, b"lib0.so"), []);
        let name = |object: u32| [b"lib", object.to_string().as_bytes(), b".so"].concat();
        for object in 0..1000_u32 {
            index.reserve(2).unwrap();
            index.add(&name(object), ObjectIndex(object));
            index.add(&[b'a', b'0' + (object % 10) as u8], ObjectIndex(object));
        }
        for object in 0..1000_u32 {
            assert_eq!(found(&index, &name(object)), [object]);
        }
        let sevens: Vec<u32> = (0..1000).filter(|object| object % 10 == 7).collect();
        assert_eq!(found(&index, b"a7"), sevens);
        assert_eq!(found(&index, b"lib1000.so"), []);
        index.clear();
        assert_eq!(found(&index, b"lib1.so"), []);
    }

    #[test]
    fn no_name_is_no_name() {
        let mut index = NameIndex::new();
        index.reserve(1).unwrap();
        index.add(b"", ObjectIndex(3));
        assert_eq!(found(&index, b""), []);
    }
}
